import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Somebody drops, replaces or renames a synced table: no row is lost for good, no queued write is lost, and the other
/// tables go on.
@Suite struct DroppedTablesTests {
  /// A file in step with a server that has the todos `a` and `b` and the note `n`.
  private func withSyncedFile(
    preparing script: String? = nil, _ tables: [String: KizunaSyncTableConfig] = SyncedFile.tables,
    _ body: (SyncedFile) async throws -> Void
  ) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder, tables)
      if let script { try file.sql.run(script) }
      for (pk, title) in [("a", "one"), ("b", "two")] { try await file.serve(pk, ["title": .string(title)]) }
      try await file.serve("n", ["body": "note"], in: "notes")
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two"])
      try await body(file)
    }
  }

  private func pulls(_ file: SyncedFile) -> [JSONValue] { file.transport.bodies(of: "pull") }

  // MARK: Between two runs

  @Test func itIsMadeAgainAndReadAgainAloneWithTheQueueOverIt() async throws {
    try await withSyncedFile { file in
      try await file.engine { _ in
        try file.sql.run(
          "INSERT INTO todos(id, title) VALUES ('c', 'new'); UPDATE todos SET title = 'mine' WHERE id = 'a'")
      }
      try file.sql.run("DROP TABLE todos")
      try await file.serve("b", ["title": "two, later"])
      file.transport.forgetCalls()
      try await file.engine { engine in
        // Without the server it shows what is queued.
        #expect(try file.rows().contains("c:new"))
        #expect(try await engine.outboxDepth() == 2)
        try await engine.sync()
      }
      #expect(try file.rows() == ["a:mine", "b:two, later", "c:new"])
      #expect(try file.rows("notes", "body") == ["n:note"])
      #expect(await file.server.row("todos", "a")?["title"] == "mine")
      #expect(await file.server.row("todos", "c")?["title"] == "new")
      #expect(file.text(of: "store.table_made_again", "table") == "todos")
      let whole = pulls(file).filter { $0["cursor"] == "0" }
      #expect(whole.count == 1)
      #expect(whole.first?["buckets"]?.arrayValue?.compactMap { $0["table"]?.stringValue } == ["todos"])
      #expect(whole.first?["client_id"] == nil)
      // Once is enough.
      file.transport.forgetCalls()
      try await file.sync()
      #expect(!pulls(file).contains { $0["cursor"] == "0" })
      // And it captures again.
      try file.sql.run("UPDATE todos SET title = 'more' WHERE id = 'b'")
      try await file.sync()
      #expect(await file.server.row("todos", "b")?["title"] == "more")
    }
  }

  @Test func writesThatNobodyHarvestedSurviveTheDrop() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "INSERT INTO todos(id, title) VALUES ('c', 'new'); UPDATE todos SET title = 'mine' WHERE id = 'a'; "
          + "DELETE FROM todos WHERE id = 'b'; DROP TABLE todos")
      try await file.engine { engine in
        #expect(try file.rows() == ["a:mine", "c:new"])
        try await engine.sync()
      }
      #expect(try file.rows() == ["a:mine", "c:new"])
      #expect(await file.server.row("todos", "b") == nil)
      #expect(await file.server.row("todos", "c")?["title"] == "new")
    }
  }

  @Test func anAppsTableComesBackAsItWasDeclared() async throws {
    let script =
      "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT NOT NULL DEFAULT 'none', done BOOLEAN); "
      + "CREATE INDEX by_title ON todos(title); CREATE TABLE seen(id); "
      + "CREATE TRIGGER app AFTER INSERT ON todos BEGIN INSERT INTO seen VALUES (NEW.id); END"
    try await withSyncedFile(preparing: script) { file in
      let declared = "SELECT sql FROM sqlite_schema WHERE name IN ('todos', 'by_title', 'app') ORDER BY name"
      let before = try file.sql.texts(declared)
      try file.sql.run("DROP TABLE todos")
      try await file.sync()
      #expect(try file.sql.texts(declared) == before)
      #expect(try file.rows() == ["a:one", "b:two"])
    }
  }

  @Test func aFailedAttemptToReadItAgainIsMadeUpFor() async throws {
    try await withSyncedFile { file in
      try file.sql.run("DROP TABLE todos")
      try await file.engine { engine in
        file.transport.faults.failNext(2, with: .postgREST("XX000", status: 500, message: "later"))
        for _ in 0..<2 { await #expect(throws: KizunaSyncError.self) { try await engine.sync() } }
        let rows = try file.rows()
        #expect(rows.isEmpty)
      }
      #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).tablesToRead == ["todos"])
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two"])
      #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).tablesToRead == [])
    }
  }

  @Test func itIsReadInPages() async throws {
    try await withSyncedFile { file in
      for number in 10..<30 { try await file.serve("r\(number)", ["title": .string("t\(number)")]) }
      try await file.sync()
      let before = try file.rows()
      try file.sql.run("DROP TABLE todos")
      try await file.engine(limit: 7) { try await $0.sync() }
      #expect(try file.rows() == before)
      #expect(before.count == 22)
    }
  }

  /// Its triggers do not know an index that was made after them, nor what it displaces.
  @Test func aTableWithANewUniqueIndexIsReadAgain() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "CREATE UNIQUE INDEX own ON todos(title); INSERT OR REPLACE INTO todos(id, title) VALUES ('c', 'one')")
      #expect(try file.rows() == ["b:two", "c:one"])
      try await file.sync()
      // The row is still on the server, and there is no place for it: that is told, and nothing is deleted.
      let status = try KizunaSyncReplicaStatus.read(databasePath: file.path)
      #expect(status.tablesToRead.isEmpty && status.parkedRows == 1)
      try file.sql.run("DROP INDEX own; INSERT OR REPLACE INTO todos(id, title) VALUES ('d', 'two')")
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two", "c:one", "d:two"])
    }
  }

  // MARK: While a client runs

  @Test func underARunningClientTheOthersGoOnAndItComesBack() async throws {
    try await withSyncedFile { file in
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'new'); DROP TABLE todos")
        try await file.serve("m", ["body": "second"], in: "notes")
        // Whoever drops it may be about to put another in its place.
        let busy = await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
        #expect(busy?.code == "STORE_BUSY")
        #expect(busy?.message.contains("the synced table todos was dropped") == true)
        let status = try KizunaSyncReplicaStatus.read(databasePath: file.path)
        #expect(status.missingTables == ["todos"])
        #expect(status.problem?.contains("todos was dropped") == true)
        #expect(file.text(of: "store.schema_problem", "reason")?.contains("todos was dropped") == true)
        await file.clock.advance(by: Replica.grace)
        try await engine.sync()
        #expect(try file.rows() == ["a:one", "b:two", "c:new"])
        #expect(try file.rows("notes", "body") == ["m:second", "n:note"])
        #expect(await file.server.row("todos", "c")?["title"] == "new")
        let after = try KizunaSyncReplicaStatus.read(databasePath: file.path)
        #expect(after.missingTables == [] && after.problem == nil && after.rows == ["notes": 2, "todos": 3])
      }
    }
  }

  @Test func anotherInItsPlaceIsTheAppsOwn() async throws {
    try await withSyncedFile { file in
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("DROP TABLE todos")
        await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
        try file.sql.run(
          "CREATE TABLE todos(id TEXT PRIMARY KEY, title TEXT, owner_id TEXT, stars INTEGER DEFAULT 3); "
            + "INSERT INTO todos(id, title) VALUES ('a', 'one'), ('x', 'unseen')")
        try await engine.sync()
        #expect(try file.rows() == ["a:one", "b:two", "x:unseen"])
        #expect(await file.server.row("todos", "x")?["title"] == "unseen")
        // The replica alters no table that is not its own.
        try await file.serve("b", ["title": "two", "extra": 1])
        try await engine.sync()
        #expect(try file.sql.integer("SELECT count(*) FROM pragma_table_info('todos') WHERE name = 'extra'") == 0)
        #expect(file.events.contains("store.writes_unseen"))
      }
    }
  }

  @Test func aTableWithoutItsKeyIsNamedUntilItIsRepaired() async throws {
    try await withSyncedFile { file in
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("DROP TABLE todos; CREATE TABLE todos(name TEXT)")
        try await file.serve("m", ["body": "second"], in: "notes")
        for _ in 0..<2 { try await engine.sync() }
        #expect(try file.rows("notes", "body") == ["m:second", "n:note"])
        #expect(file.events.filter { $0 == "store.table_set_aside" }.count == 1)
        let reason = try KizunaSyncReplicaStatus.read(databasePath: file.path).tablesSetAside["todos"]
        #expect(reason?.contains("the table todos has no column id") == true)
        try file.sql.run("DROP TABLE todos; CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id, title)")
        try await engine.sync()
        #expect(try file.rows() == ["a:one", "b:two"])
        #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).tablesSetAside.isEmpty)
      }
    }
  }

  @Test func rebuildingATableTheWaySQLiteRecommendsLosesNothing() async throws {
    try await withSyncedFile { file in
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run(
          "UPDATE todos SET title = 'before' WHERE id = 'a'; BEGIN; "
            + "CREATE TABLE fresh(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT CHECK (title <> '')); "
            + "INSERT INTO fresh SELECT id, owner_id, title FROM todos; DROP TABLE todos; "
            + "ALTER TABLE fresh RENAME TO todos; UPDATE todos SET title = 'after' WHERE id = 'b'; COMMIT")
        try await engine.sync()
      }
      #expect(try file.rows() == ["a:before", "b:after"])
      #expect(await file.server.row("todos", "a")?["title"] == "before")
      #expect(await file.server.row("todos", "b")?["title"] == "after")
    }
  }

  // MARK: Triggers

  @Test func writesMadeWhileTheTriggersWereGoneAreFoundAndQueued() async throws {
    try await withSyncedFile { file in
      try await file.serve("z", ["title": "deleted there"])
      try await file.sync()
      let triggers = try file.sql.texts("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'todos'")
      try file.sql.run(triggers.map { "DROP TRIGGER \"\($0)\"" }.joined(separator: "; "))
      try file.sql.run(
        "UPDATE todos SET title = 'mine' WHERE id = 'a'; INSERT INTO todos(id, title) VALUES ('c', 'new')")
      try await file.server.delete("todos", "z")
      try await file.serve("b", ["title": "theirs"])
      try await file.sync()
      #expect(try file.rows() == ["a:mine", "b:theirs", "c:new"])
      #expect(await file.server.row("todos", "a")?["title"] == "mine")
      #expect(await file.server.row("todos", "b")?["title"] == "theirs")
      #expect(await file.server.row("todos", "c")?["title"] == "new")
      #expect(await file.server.row("todos", "z") == nil)
      #expect(file.text(of: "store.writes_unseen", "table") == "todos")
      // Only what differs was sent.
      let sent = file.transport.bodies(of: "push").flatMap { $0["batch"]?["mutations"]?.arrayValue ?? [] }
      #expect(sent.compactMap { $0["pk"]?.stringValue }.sorted() == ["a", "c"])
      #expect(sent.first { $0["pk"] == "a" }?["columns"] == ["title": "mine"])
    }
  }

  /// What a table may do is the configuration's to say; no write goes unseen because that changes.
  @Test func otherRulesForATableAreNoGap() async throws {
    try await withScratchFolder { folder in
      let rules: [KizunaSyncTableConfig] = [
        .init(bucket: .byOwner("owner_id")), .init(bucket: .byOwner("owner_id"), softDeleteColumn: "gone"),
        .init(bucket: .byOwner("owner_id"), syncMode: .pullOnly), .init(bucket: .byOwner("owner_id")),
      ]
      for rule in rules {
        let file = SyncedFile(folder, ["todos": rule])
        try await file.sync()
        #expect(!file.events.contains("store.writes_unseen"))
        if rule.syncMode == .pullOnly {
          #expect(throws: PlainDatabase.Failure.self) { try file.sql.run("INSERT INTO todos(id) VALUES ('x')") }
        }
      }
    }
  }

  @Test func anEmptyTableInItsPlaceDeletesNothing() async throws {
    try await withSyncedFile { file in
      try file.sql.run("DROP TABLE todos; CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT)")
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two"])
      #expect(await file.server.rowCount("todos") == 2)
    }
  }

  // MARK: Renamed

  @Test func aRenamedTableStaysAsideAndTheNameIsFilledAgain() async throws {
    try await withSyncedFile { file in
      try file.sql.run("ALTER TABLE todos RENAME TO archive")
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two"])
      #expect(try file.rows("archive") == ["a:one", "b:two"])
      #expect(file.text(of: "store.table_renamed", "to") == "archive")
      // What happens to the archive is its own affair.
      try file.sql.run("DELETE FROM archive")
      try await file.sync()
      #expect(await file.server.rowCount("todos") == 2)
    }
  }

  @Test func twoTablesThatChangePlacesAreToldApart() async throws {
    let tables: [String: KizunaSyncTableConfig] = [
      "notes": .init(bucket: .byOwner("owner_id")),
      "todos": .init(bucket: .byOwner("owner_id"), columns: ["title": .text]),
      "todos_before": .init(bucket: .byOwner("owner_id"), columns: ["title": .text]),
    ]
    try await withSyncedFile(tables) { file in
      try await file.serve("p", ["title": "past"], in: "todos_before")
      try await file.sync()
      try file.sql.run(
        "ALTER TABLE todos RENAME TO t; ALTER TABLE todos_before RENAME TO todos; ALTER TABLE t RENAME TO todos_before")
      try await file.sync()
      #expect(try file.rows().filter { !$0.hasPrefix("p:") } == ["a:one", "b:two"])
      try file.sql.run("UPDATE todos_before SET title = 'x' WHERE id = 'p'")
      try await file.sync()
      #expect(await file.server.row("todos_before", "p")?["title"] == "x")
    }
  }

  @Test func namesThatDifferInCaseAreOneTable() async throws {
    try await withSyncedFile(preparing: "CREATE TABLE Todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT)") { file in
      try file.sql.run("UPDATE Todos SET title = 'mine' WHERE id = 'a'")
      try await file.sync()
      #expect(await file.server.row("todos", "a")?["title"] == "mine")
      #expect(!file.events.contains("store.writes_unseen"))
      #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).rows["todos"] == 2)
    }
  }
}
