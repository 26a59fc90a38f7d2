import Foundation
import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Supabase
import Testing

/// The example app of the guides, as written there, runs in every mode an app may be compiled in.
@MainActor
@Suite(.serialized) struct UserCodeTests {
  static let ada = "00000000-0000-4000-8000-a10000000001"
  static let bob = "00000000-0000-4000-8000-a10000000002"

  /// One server for each mode, because the app's client is a global that keeps its transport.
  static let transports = (0..<3).map { _ in
    SyncServerTransport(
      SyncServer(configuration: SyncServerConfiguration(tables: ["todos": SyncTable(bucketColumn: "user_id")])))
  }

  /// Waits for something that threads of the app bring about.
  func eventually(
    _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
  ) async rethrows {
    let end = SystemClock.monotonic + .seconds(20)
    while try await !condition() {
      guard SystemClock.monotonic < end else {
        Issue.record(what, sourceLocation: sourceLocation)
        return
      }
      await Task.yield()
    }
  }

  /// Lets the app keep its database in a folder of the test's own.
  func withDataFolder(_ body: () async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("user-code-\(RandomUUID.make())")
    setenv("XDG_DATA_HOME", folder.path, 1)
    defer {
      unsetenv("XDG_DATA_HOME")
      try? FileManager.default.removeItem(at: folder)
    }
    try await body()
  }

  @Test(arguments: 0..<3)
  func theTodoAppWorks(mode: Int) async throws {
    let app = UserApp.all[mode]
    let transport = Self.transports[mode]
    let client = ClientDefaults.$http.withValue(transport) { app.client() }
    app.supabase().auth.use(token: TestToken.user(Self.ada))
    try await withDataFolder {
      let root = app.root()
      await root.task()
      #expect(root.isOpen)
      #expect(root.failure == nil)

      // An insert made before the first token came would keep its owner unset, and be refused.
      await eventually("the first run does not end") { app.scheduler().health().lastSuccessAt != nil }

      let screen = app.todos()
      await screen.start()
      await screen.add(title: "Buy milk")
      #expect(screen.failure == nil)
      await eventually("the list does not follow an insert") { screen.titles == ["Buy milk"] }
      await eventually("the insert wakes no push") { await transport.server.rowCount("todos") == 1 }
      let row = try await client.from("todos").select().single() as? [String: Any]
      #expect(row?["user_id"] as? String == Self.ada)
      #expect(row?["done"] as? Bool == false)
      #expect(screen.failure == nil)

      try await theDoorbellRings(app, screen, transport.server)
      try await theSwitchOfAccounts(app, client)
      screen.stop()
      app.scheduler().stop()
      await client.dispose()
    }
  }

  /// A peer's row arrives because a broadcast rang, with a scheduler that does not poll.
  func theDoorbellRings(_ app: UserApp, _ screen: any TodoScreen, _ server: SyncServer) async throws {
    app.scheduler().stop()
    let scheduler = app.withRealtime()
    scheduler.pollInterval = 0
    scheduler.start()
    await eventually("the adapter joins nothing") { app.supabase().realtimeV2.joined == ["kizunasync:todos"] }
    await eventually("the first run does not end") { scheduler.health().lastSuccessAt != nil }
    try await server.upsert("todos", RandomUUID.make(), ["title": "From a peer", "user_id": .string(Self.ada)])
    app.supabase().realtimeV2.broadcast("changed", topic: "kizunasync:todos")
    await eventually("the ring brings no row") { screen.titles.contains("From a peer") }
    scheduler.stop()
    await eventually("stop leaves the channel") { app.supabase().realtimeV2.joined.isEmpty }
    app.scheduler().start()
  }

  func theSwitchOfAccounts(_ app: UserApp, _ client: KizunaSyncClient) async throws {
    let status = app.status()
    status.start()
    let stop = try await app.subscribe()
    app.supabase().auth.use(token: TestToken.user(Self.bob))
    app.scheduler().wake()
    await eventually("the block is not published") { status.health.needsReset }
    #expect(try await client.checkpoint().softBlockReason == "identity_changed")
    app.pressReset()
    await eventually("the reset lifts no block") { !status.health.needsReset }
    let rows = try await client.from("todos").select().execute() as? [[String: Any]]
    #expect(rows?.isEmpty == true)
    await eventually("the events do not reach the main actor") {
      app.events().contains(.resetRequired(reason: "identity_changed"))
    }
    stop()
    status.stop()
  }

  /// The scheduler of the reference page, whose `onError` is a closure of the app's own isolation.
  @Test(arguments: 0..<3)
  func theSchedulerOfTheReferenceRuns(mode: Int) async throws {
    let app = UserApp.all[mode]
    let transport = Self.transports[mode]
    let client = ClientDefaults.$http.withValue(transport) { app.client() }
    app.supabase().auth.use(token: TestToken.user(Self.ada))
    try await client.create(
      .init(
        tables: ["todos": .init(bucket: .byOwner("user_id"))],
        remote: .init(url: "https://your-project-ref.supabase.co", publishableKey: "k")))
    let scheduler = app.usage()
    transport.faults.failNext(1)
    scheduler.start()
    await eventually("the failure is not told") { scheduler.health().lastError?.code == "REMOTE" }
    scheduler.wake()
    await eventually("the next wake does not succeed") { scheduler.health().lastSuccessAt != nil }
    scheduler.stop()
    await client.dispose()
  }

  /// Rows of the app's own types, in every mode.
  @Test(arguments: 0..<3)
  func typedRowsNeedNoCast(mode: Int) async throws {
    let app = UserApp.all[mode]
    let client = ClientDefaults.$http.withValue(Self.transports[mode]) { app.client() }
    try await client.create(.init(tables: ["todos": .init(columns: ["done": .boolean])]))
    #expect(try await app.typed())
    await client.dispose()
  }
}
