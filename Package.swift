// swift-tools-version: 6.2
import PackageDescription

// Floors, lowest first; a target depends only on targets of lower floors.
let floor0: [Target] = [
  .systemLibrary(name: "CLinux"),
  .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
  .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
  .systemLibrary(name: "CLibwebsockets", providers: [.apt(["libwebsockets-dev"])]),
  // Only with the trait `Postgres`.
  .systemLibrary(name: "CPostgres", providers: [.apt(["libpq-dev"])]),
  // What `bench ingest` is measured against; no part of the gateway.
  .target(name: "CIngestFloor", dependencies: ["CCurl", "CSQLite"]),
]

let nonisolatedNonsending: [SwiftSetting] = [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

let sources: [Target] = [
  .target(name: "HostKit", dependencies: ["CLinux"]),

  .target(name: "PhoenixChannels", dependencies: ["HostKit"]),
  .target(name: "HTTPClient", dependencies: ["CCurl", "CLinux", "HostKit"]),
  .target(name: "SyncServer", dependencies: ["HostKit"]),
  .target(
    name: "ServerPack", dependencies: ["HostKit"],
    resources: [.embedInCode("Resources/migration.sql"), .embedInCode("Resources/deprovision.sql")]),

  .target(
    name: "SupabaseRealtime", dependencies: ["CLibwebsockets", "CLinux", "HostKit", "HTTPClient", "PhoenixChannels"]),
  .target(
    name: "KizunaSync", dependencies: ["CLinux", "CSQLite", "HostKit", "HTTPClient"],
    swiftSettings: nonisolatedNonsending),
  .target(name: "SupabaseSession", dependencies: ["HostKit", "HTTPClient"]),

  .target(
    name: "KizunaDoorbell",
    dependencies: ["HTTPClient", "HostKit", "KizunaSync", "PhoenixChannels", "SupabaseRealtime", "SupabaseSession"]),
  .target(
    name: "KizunaSyncTestSupport",
    dependencies: [
      "CLinux", "HostKit", "HTTPClient", "KizunaSync", "PhoenixChannels", "SupabaseRealtime", "SyncServer",
    ]),

  .target(
    name: "LocalStack",
    dependencies: ["CLibwebsockets", "CLinux", "HostKit", "PhoenixChannels", "SupabaseRealtime", "SyncServer"]),

  // Empty without the trait `Postgres`, so that nothing else needs libpq.
  .target(
    name: "PostgresStack",
    dependencies: [
      .target(name: "CPostgres", condition: .when(traits: ["Postgres"])), "CLinux", "HostKit", "LocalStack",
      "SupabaseRealtime", "SyncServer",
    ],
    resources: [.embedInCode("Resources/scaffolding.sql")]),

  .executableTarget(
    name: "kizuna-doorbell",
    dependencies: [
      "CCurl", "CIngestFloor", "CLibwebsockets", "CSQLite", "HostKit", "HTTPClient", "KizunaDoorbell", "KizunaSync",
      "PhoenixChannels", "ServerPack", "SupabaseRealtime", "SupabaseSession",
    ]),
  .executableTarget(
    name: "kizuna-localstack", dependencies: ["HostKit", "LocalStack", "PostgresStack", "SyncServer"]),
  // A measurement of the connection's policies; no product of the package.
  .executableTarget(name: "kizuna-storm", dependencies: ["HostKit", "PhoenixChannels"]),
]

let tests: [Target] = [
  .testTarget(name: "HostKitTests", dependencies: ["HostKit"]),
  .testTarget(
    name: "PhoenixChannelsTests", dependencies: ["HostKit", "PhoenixChannels", "kizuna-storm"], exclude: ["Fixtures"]),
  .testTarget(name: "HTTPClientTests", dependencies: ["CLinux", "HostKit", "HTTPClient"]),
  .testTarget(
    name: "SyncServerTests", dependencies: ["HostKit", "HTTPClient", "KizunaSyncTestSupport", "SyncServer"],
    exclude: ["Transcripts"]),
  .testTarget(
    name: "SupabaseRealtimeTests",
    dependencies: [
      "CLibwebsockets", "CLinux", "HostKit", "HTTPClient", "KizunaSyncTestSupport", "LocalStack", "PhoenixChannels",
      "SupabaseRealtime", "SyncServer",
    ]),
  .testTarget(
    name: "KizunaSyncTests",
    dependencies: [
      "CSQLite", "HostKit", "HTTPClient", "KizunaSync", "KizunaSyncTestSupport", "LocalStack", "PostgresStack",
      "PostgresTestSupport", "ServerPack", "SyncServer",
    ],
    resources: [.embedInCode("Store/Format2.sql")]),
  .testTarget(
    name: "SupabaseSessionTests", dependencies: ["HostKit", "HTTPClient", "KizunaSyncTestSupport", "SupabaseSession"]),
  .testTarget(
    name: "KizunaDoorbellTests",
    dependencies: [
      "CLinux", "HTTPClient", "HostKit", "KizunaDoorbell", "KizunaSync", "KizunaSyncTestSupport", "LocalStack",
      "PhoenixChannels", "SupabaseRealtime", "SupabaseSession",
    ]),
  .testTarget(
    name: "LocalStackTests",
    dependencies: ["HostKit", "HTTPClient", "LocalStack", "PhoenixChannels", "SupabaseRealtime", "SyncServer"]),
  // Empty without the trait `Postgres`, and skipped where PostgreSQL is not installed.
  .testTarget(
    name: "PostgresStackTests",
    dependencies: [
      "HTTPClient", "HostKit", "KizunaDoorbell", "KizunaSync", "LocalStack", "PhoenixChannels", "PostgresStack",
      "PostgresTestSupport", "SupabaseRealtime", "SyncServer",
    ]),
  .testTarget(
    name: "ServerPackTests", dependencies: ["HostKit", "KizunaSyncTestSupport", "PostgresTestSupport", "ServerPack"]),
  .testTarget(
    name: "CommandTests",
    dependencies: [
      "CSQLite", "HostKit", "HTTPClient", "KizunaDoorbell", "KizunaSync", "KizunaSyncTestSupport", "LocalStack",
      "PhoenixChannels", "PostgresTestSupport", "SupabaseRealtime", "SyncServer", "kizuna-doorbell",
      "kizuna-localstack",
    ]),
]

/// The example code of the Kizuna guides, compiled as an app would compile it: three modules from one folder.
func userCode(_ name: String, _ settings: [SwiftSetting]) -> Target {
  .target(
    name: "UserCode\(name)", dependencies: ["KizunaSync", "Supabase"], path: "Tests/UserCode/\(name)",
    swiftSettings: settings)
}

let userCodeTargets: [Target] = [
  // Stands in for supabase-swift.
  .target(name: "Supabase", path: "Tests/UserCode/Supabase"),
  userCode("Swift5Mode", [.swiftLanguageMode(.v5)]),
  userCode("Swift6Mode", [.swiftLanguageMode(.v6)]),
  userCode("MainActorMode", [.swiftLanguageMode(.v6), .defaultIsolation(MainActor.self)]),
  .testTarget(
    name: "UserCodeTests",
    dependencies: [
      "HTTPClient", "HostKit", "KizunaSync", "KizunaSyncTestSupport", "Supabase", "UserCodeMainActorMode",
      "UserCodeSwift5Mode", "UserCodeSwift6Mode",
    ]),
]

let tools: [Target] = [
  // A PostgreSQL cluster for the time of a test run.
  .target(name: "PostgresTestSupport", dependencies: ["HostKit"], path: "Tests/PostgresTestSupport"),
  // Not a product: `Scripts/soak` runs it.
  .executableTarget(
    name: "kizuna-soak", dependencies: ["CSQLite", "HostKit", "KizunaSyncTestSupport", "LocalStack", "SyncServer"],
    path: "Tests/Soak"),
]

let package = Package(
  name: "kizuna-doorbell",
  products: [
    .library(name: "KizunaSync", targets: ["KizunaSync"]),
    .library(name: "KizunaDoorbell", targets: ["KizunaDoorbell"]),
    .library(name: "SupabaseRealtime", targets: ["SupabaseRealtime"]),
    .library(name: "SupabaseSession", targets: ["SupabaseSession"]),
    .library(name: "PhoenixChannels", targets: ["PhoenixChannels"]),
    .library(name: "KizunaSyncTestSupport", targets: ["KizunaSyncTestSupport"]),
    // Clocks, addresses and JSON, which the interfaces of the others speak of.
    .library(name: "HostKit", targets: ["HostKit"]),
    .executable(name: "kizuna-doorbell", targets: ["kizuna-doorbell"]),
    .executable(name: "kizuna-localstack", targets: ["kizuna-localstack"]),
  ],
  traits: [
    .trait(name: "Postgres", description: "kizuna-localstack --postgres URL, which needs libpq (libpq-dev)")
  ],
  targets: floor0 + sources + tests + tools + userCodeTargets,
  swiftLanguageModes: [.v6]
)
