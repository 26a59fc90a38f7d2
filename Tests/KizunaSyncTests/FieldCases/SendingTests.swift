import HostKit
import KizunaSyncTestSupport
import SyncServer
import Testing

@testable import KizunaSync

/// Writes that the server refuses, and tables that change under the host.
@Suite struct SendingTests {
  /// F29: of a hundred writes one is refused. The others arrive in the same pass, the one is parked with its table, key and
  /// reason, and can be sent again when what was in its way is gone.
  @Test func oneRefusedWriteHoldsUpNothing() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder, tables: ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["n": .number])],
        served: FieldHost.todos(["n": .integer]))
      try await host.engine { engine in
        try await engine.sync()
        // The key is somebody else's, which only the server knows.
        try host.serve("k37", ["owner_id": "somebody else"])
        for index in 1...100 { try host.run("INSERT INTO todos(id, n) VALUES ('k\(index)', \(index))") }
        try await engine.sync()
        #expect(try await engine.outboxDepth() == 0)
        #expect((1...100).filter { host.served("k\($0)")?["n"] == .int($0) } == (1...100).filter { $0 != 37 })
        #expect(try host.texts("SELECT count(*) FROM todos") == ["99"])
        let parked = try await engine.rejections(includeDismissed: false)
        #expect(parked.map { "\($0.table) \($0.pk) \($0.reason)" } == ["todos k37 RLS_DENIED"])
        #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).rejections == 1)

        try host.serve("k37", ["n": 0])
        #expect(try await engine.retryRejection(parked[0].mutationId).count == 1)
        try await engine.sync()
        #expect(host.served("k37")?["n"] == 37)
        #expect(try host.texts("SELECT count(*) FROM todos") == ["100"])
        #expect(try await engine.rejections(includeDismissed: false).isEmpty)
      }
    }
  }

  /// F31: the server gains a column. Pulls go on, it is reported once, and when the app's table gains it too, old rows are
  /// filled without the others being touched.
  @Test func aNewColumnIsReportedAndFilledLater() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder,
        tables: FieldHost.todos.merging(["notes": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))]) { $1 },
        served: FieldHost.todos([:]).merging(["notes": SyncTable(bucketColumn: "owner_id")]) { $1 },
        preparing: """
          CREATE TABLE todos(id TEXT PRIMARY KEY, title TEXT, owner_id TEXT);
          CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, owner_id TEXT);
          CREATE TABLE fired(id TEXT);
          CREATE TRIGGER app AFTER UPDATE ON notes BEGIN INSERT INTO fired VALUES (NEW.id); END;
          """)
      try host.serve("old", ["title": "x"])
      try host.serve("n", ["title": "x"], in: "notes")
      try await host.engine { engine in
        try await engine.sync()
        for round in 1...3 {
          try host.serve("k\(round)", ["title": "x", "color": .string("c\(round)")])
          try await engine.sync()
        }
        try host.serve("old", ["color": "grey"])
        try await engine.sync()
        #expect(try host.texts("SELECT count(*) FROM todos") == ["4"])
        #expect(host.events("store.column_ignored").count == 1, "\(host.log.withLock { $0.map(\.event) })")
        #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).ignoredColumns == ["todos.color"])

        try host.run("ALTER TABLE todos ADD COLUMN color TEXT")
        try await engine.sync()
        #expect(
          try host.texts("SELECT id || ' ' || coalesce(color, '-') FROM todos ORDER BY id")
            == ["k1 c1", "k2 c2", "k3 c3", "old grey"])
        #expect(try host.texts("SELECT * FROM fired") == [])
        #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).ignoredColumns == [])
      }
    }
  }

  /// F31: the server lacks a column. Only the writes that name it are parked, with its name.
  @Test func aMissingColumnParksOnlyItsWrites() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder, tables: FieldHost.todos, served: FieldHost.todos(["id": .text, "title": .text], isClosed: true))
      try await host.engine { engine in
        try await engine.sync()
        try host.run(
          """
          ALTER TABLE todos ADD COLUMN title; ALTER TABLE todos ADD COLUMN gone;
          INSERT INTO todos(id, title) VALUES ('a', 'x'), ('b', 'x'), ('c', 'x');
          """)
        try await engine.sync()
        try host.run("UPDATE todos SET gone = 1 WHERE id = 'b'; UPDATE todos SET title = 'y'")
        try await engine.sync()
        #expect(try await engine.outboxDepth() == 0)
        #expect(host.served("a")?["title"] == "y" && host.served("c")?["title"] == "y")
        let parked = try await engine.rejections(includeDismissed: false)
        #expect(parked.map { "\($0.pk) \($0.reason)" } == ["b COLUMN_DENIED"])
        #expect(parked.first?.changedColumns.contains("gone") == true)
      }
    }
  }

  /// F33: another program holds the write lock for longer than anybody waits. Readers are not disturbed, the run fails as
  /// one that may be repeated, and the next one loses nothing.
  @Test func aLockThatIsHeldForLongOnlyDelays() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(folder, tables: FieldHost.todos, served: FieldHost.todos(["title": .text]))
      try await host.engine { engine in
        try await engine.sync()
        try host.serve("there", ["title": "x"])
        let other = try PlainDatabase(host.path)
        try other.run("BEGIN IMMEDIATE; INSERT INTO todos(id) VALUES ('theirs')")
        // Waits as long as SQLite does, five seconds.
        let error = await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
        #expect(error?.code == "STORE_BUSY" && error?.isRetryable == true)
        #expect(try await engine.read { try $0.rows("todos").isEmpty })
        try other.run("COMMIT")
        other.close()
        try await engine.sync()
        #expect(try host.texts("SELECT id FROM todos ORDER BY id") == ["theirs", "there"])
        #expect(host.served("theirs") != nil)
      }
    }
  }
}
