import KizunaSync
import Testing

@Suite struct ConfigurationCheckTests {
  func failure(_ config: KizunaSyncClientConfig) async -> KizunaSyncError? {
    let client = KizunaSyncClient()
    defer { Task { await client.dispose() } }
    do {
      try await client.create(config)
      return nil
    } catch {
      return error as? KizunaSyncError
    }
  }

  @Test(arguments: [
    (KizunaSyncClientConfig(clientId: "device-1", tables: [:]), "clientId"),
    (KizunaSyncClientConfig(schemaVersion: 0, tables: [:]), "schemaVersion"),
    (KizunaSyncClientConfig(tables: [:], databasePath: ""), "databasePath"),
    (KizunaSyncClientConfig(tables: [:], databasePath: "/tmp/a\0b"), "NUL"),
    (KizunaSyncClientConfig(tables: [:], defaultLimit: 0), "defaultLimit"),
    (KizunaSyncClientConfig(tables: ["sqlite_x": .init()]), "\"sqlite_x\" is reserved"),
    (KizunaSyncClientConfig(tables: ["pragma_table_info": .init()]), "\"pragma_table_info\" is reserved"),
    (KizunaSyncClientConfig(tables: ["_kizunasync_outbox": .init()]), "_kizunasync_outbox"),
    (KizunaSyncClientConfig(tables: ["t": .init(bucket: .byOwner(""))]), "bucket_owner"),
    (KizunaSyncClientConfig(tables: ["t": .init(bucket: .byOwner("id"))]), "bucket_owner"),
    (KizunaSyncClientConfig(tables: ["t": .init(bucket: .byColumn(""))]), "bucket_column"),
    (KizunaSyncClientConfig(tables: ["Notes": .init()]), "Notes"),
    (KizunaSyncClientConfig(tables: ["t": .init(key: [])]), "key"),
    (KizunaSyncClientConfig(tables: ["t": .init(key: ["a", "a"])]), "twice"),
    (KizunaSyncClientConfig(tables: ["t": .init(softDeleteColumn: "id")]), "softDeleteColumn"),
    (
      KizunaSyncClientConfig(tables: [:], remote: .init(url: "http://example.com", publishableKey: "k")), "remote.url"
    ),
    (
      KizunaSyncClientConfig(
        tables: Dictionary(uniqueKeysWithValues: (0..<65).map { ("t\($0)", KizunaSyncTableConfig()) })), "65 tables"
    ),
  ])
  func whatCannotWorkIsRefusedByName(config: KizunaSyncClientConfig, named: String) async {
    let error = await failure(config)
    #expect(error?.code == "CONFIG_INVALID")
    #expect(error?.message.contains(named) == true)
  }

  @Test func everythingThatIsWrongIsToldAtOnce() async {
    let error = await failure(.init(clientId: "x", schemaVersion: 0, tables: ["t": .init(key: [])], databasePath: ""))
    for part in ["clientId", "schemaVersion", "databasePath", "t: key"] {
      #expect(error?.message.contains(part) == true)
    }
  }

  @Test func attachmentsNeedARoot() async {
    let tables = ["t": KizunaSyncTableConfig(attachments: ["photo": .init(storageBucket: "s", ownerColumn: "o")])]
    #expect(await failure(.init(tables: tables))?.code == "ATTACHMENT_PORTS_MISSING")
    #expect(await failure(.init(tables: tables, attachmentRoot: "/tmp")) == nil)
  }

  @Test func aGoodConfigurationOpens() async {
    #expect(await failure(.init(tables: ["t": .init()])) == nil)
    #expect(await failure(.init(tables: ["t": .init()], databasePath: ":memory:")) == nil)
  }
}
