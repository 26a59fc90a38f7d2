import Glibc
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

@Suite struct KizunaSyncReplicaStatusTests {
  private static let user = "11111111-1111-4111-8111-111111111111"

  /// An engine on a new file, signed in, with a server that refuses nothing.
  private func withEngine(_ body: (String, SyncEngine, SyncServerTransport) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let path = folder + "/replica.db"
      let server = SyncServer(
        configuration: SyncServerConfiguration(tables: ["todos": SyncTable(bucketColumn: "owner_id")]))
      let transport = SyncServerTransport(server)
      let config = KizunaSyncClientConfig(
        tables: ["todos": .init(bucket: .byOwner("owner_id"), columns: ["title": .text])], databasePath: path,
        remote: .init(url: "http://localhost", publishableKey: "key", accessToken: TestToken.user(Self.user)))
      let engine = try await SyncEngine.open(
        config: config, http: transport, clock: SystemClock.shared, log: .none, emit: { _ in })
      try await body(path, engine, transport)
      await engine.dispose()
    }
  }

  @Test func tellsWhatTheFileHolds() async throws {
    try await withEngine { path, engine, transport in
      let fresh = try KizunaSyncReplicaStatus.read(databasePath: path)
      #expect(fresh.cursor == "0")
      #expect(fresh.outboxDepth == 0)
      #expect(fresh.oldestWrite == nil)
      #expect(fresh.lastSyncAt == nil)
      #expect(fresh.rows == ["todos": 0])
      #expect(fresh.holder?.processID == getpid())

      try PlainDatabase(path).run("INSERT INTO todos(title) VALUES ('a'), ('b')")
      _ = try await engine.outboxDepth()
      let queued = try KizunaSyncReplicaStatus.read(databasePath: path)
      #expect(queued.outboxDepth == 2)
      #expect(queued.oldestWrite?.table == "todos")
      #expect(queued.oldestWrite?.lastError == nil)

      transport.faults.failNext(with: .postgREST("XX000", status: 500, message: "the disk of the server is full"))
      await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      let failed = try KizunaSyncReplicaStatus.read(databasePath: path)
      #expect(failed.oldestWrite?.lastError?.contains("HTTP 500, XX000: the server failed") == true)
      #expect(failed.oldestWrite?.lastError?.contains("the disk of the server is full") == false)
      #expect(failed.oldestWrite?.attempts == 1)
      transport.faults.failNext(with: .connectionLost)
      await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      transport.faults.failNext(with: .permanent)
      transport.faults.failNext(with: .permanent)
      await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      // Whatever the reason.
      #expect(try KizunaSyncReplicaStatus.read(databasePath: path).oldestWrite?.attempts == 3)
      #expect(try KizunaSyncOutbox.queued(databasePath: path).map(\.attempts) == [3, 0])

      try await engine.sync()
      let synced = try KizunaSyncReplicaStatus.read(databasePath: path)
      #expect(synced.outboxDepth == 0)
      #expect(synced.cursor == "2")
      #expect(synced.rows == ["todos": 2])
      #expect(synced.lastSyncAt != nil)
      #expect(synced.rejections == 0 && synced.overwrites == 0 && synced.parkedRows == 0)
      #expect(synced.softBlock == nil)
    }
  }

  @Test func countsWhatNobodyHasQueuedYet() async throws {
    try await withEngine { path, engine, _ in
      await engine.dispose()
      try PlainDatabase(path).run("INSERT INTO todos(title) VALUES ('a'), ('b'), ('c')")
      let status = try KizunaSyncReplicaStatus.read(databasePath: path)
      #expect(status.outboxDepth == 3)
      #expect(status.holder == nil)
      let now = SystemClock.shared.wallMilliseconds
      #expect(status.oldestWrite.map { $0.table == "todos" && now - $0.at < 60_000 && $0.attempts == 0 } == true)
    }
  }

  @Test func countsRefusals() async throws {
    try await withEngine { path, engine, _ in
      try await engine.sync()
      // A row in another user's bucket: row-level security refuses it.
      try PlainDatabase(path).run("INSERT INTO todos(owner_id, title) VALUES ('somebody else', 'a')")
      try await engine.sync()
      #expect(try KizunaSyncReplicaStatus.read(databasePath: path).rejections == 1)
    }
  }

  @Test func saysWhatIsWrongWithTheFile() throws {
    try withScratchFolder { folder in
      func problem(_ path: String) -> String {
        do {
          _ = try KizunaSyncReplicaStatus.read(databasePath: path)
          return "none"
        } catch { return "\(error)" }
      }
      #expect(problem(folder + "/absent.db").contains("there is no database"))
      try PlainDatabase(folder + "/plain.db").run("CREATE TABLE t(a)")
      #expect(problem(folder + "/plain.db").contains("but no replica yet"))
      let text = try #require(fopen(folder + "/text.db", "w"))
      fputs(String(repeating: "this is not a database, it is text. ", count: 100), text)
      fclose(text)
      #expect(problem(folder + "/text.db").contains("is not an SQLite database"))
    }
  }
}
