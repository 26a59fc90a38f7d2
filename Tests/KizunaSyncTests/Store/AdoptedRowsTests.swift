import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

@Suite struct AdoptedRowsTests {
  /// How many rows of an app's own table are queued is told as it is, also while nobody has signed in yet.
  @Test(arguments: [false, true])
  func theRowsOfAnAppAreCounted(isOwned: Bool) async throws {
    try await withScratchFolder { folder in
      let path = folder + "/a.db"
      try PlainDatabase(path).run(
        "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT); "
          + "INSERT INTO todos(id, title) VALUES ('a', 'x'), ('b', 'y'), ('c', 'z')")
      let rows = Locked<[JSONValue]>([])
      let log = HostLog { _, event, fields in
        guard event == "store.adopted" else { return }
        rows.withLock { $0 += fields.filter { $0.0 == "rows" }.map(\.1) }
      }
      let config = KizunaSyncClientConfig(
        tables: ["todos": .init(bucket: isOwned ? .byOwner("owner_id") : .none)], databasePath: path,
        remote: .init(url: "http://localhost", publishableKey: "key"))
      let engine = try await SyncEngine.open(
        config: config, http: ScriptedHTTP(), clock: SystemClock.shared, log: log, emit: { _ in })
      await engine.dispose()
      #expect(rows.withLock { $0 } == [3])
    }
  }
}
