import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// A table that cannot take rows does not keep the others from theirs, and is made up for when the cause is gone.
@Suite struct TablesSetAsideTests {
  struct Breakage: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var cause: String
    var repair: String
    /// What the sentence names.
    var names: [String]

    private static func declaration(_ from: String, _ to: String) -> String {
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '\(from)', '\(to)') WHERE name = 'todos'; "
        + "PRAGMA writable_schema = OFF; "
    }

    static let all = [
      Breakage(
        testDescription: "a trigger needs a table that is gone", cause: "DROP TABLE log",
        repair: "CREATE TABLE log(id)",
        names: ["the trigger logs on todos", "the table log"]),
      Breakage(
        testDescription: "a trigger calls a function",
        cause: "CREATE TRIGGER app AFTER UPDATE ON todos BEGIN SELECT mine(NEW.id); END", repair: "DROP TRIGGER app",
        names: ["the trigger app on todos", "the function mine"]),
      Breakage(
        testDescription: "a delete trigger calls a function",
        cause: "CREATE TRIGGER app BEFORE DELETE ON todos BEGIN SELECT mine(OLD.id); END", repair: "DROP TRIGGER app",
        names: ["the trigger app on todos", "the function mine"]),
      Breakage(
        testDescription: "a trigger of another table is in the way",
        cause: "CREATE TRIGGER app AFTER INSERT ON log BEGIN INSERT INTO far VALUES (NEW.id); END",
        repair: "DROP TRIGGER app", names: ["the trigger app on log", "the table far"]),
      Breakage(
        testDescription: "a check calls a function",
        cause: declaration("title TEXT", "title TEXT CHECK (mine(title))") + "PRAGMA schema_version = 9000",
        repair: declaration("title TEXT CHECK (mine(title))", "title TEXT") + "PRAGMA schema_version = 9100",
        names: ["the declaration of the table todos", "the function mine"]),
      Breakage(
        testDescription: "a unique index has a collation of its own",
        cause: declaration("slug TEXT", "slug TEXT COLLATE mine") + "PRAGMA schema_version = 9000",
        repair: declaration("slug TEXT COLLATE mine", "slug TEXT") + "PRAGMA schema_version = 9100",
        names: ["the collation mine"]),
      Breakage(
        testDescription: "a trigger undoes the transaction",
        cause: "CREATE TRIGGER app BEFORE INSERT ON todos WHEN NEW.id = 'c' BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
        repair: "DROP TRIGGER app", names: ["the trigger app on todos", "it says: no", "ABORT"]),
      Breakage(
        testDescription: "a trigger undoes the transaction at a delete",
        cause: "CREATE TRIGGER app BEFORE DELETE ON todos BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
        repair: "DROP TRIGGER app", names: ["the trigger app on todos"]),
      Breakage(
        testDescription: "it is no table any more",
        cause: "ALTER TABLE todos RENAME TO kept; CREATE VIEW todos AS SELECT 1",
        repair: "DROP VIEW todos; ALTER TABLE kept RENAME TO todos", names: ["todos is a view"]),
      Breakage(
        testDescription: "its key takes two for one",
        cause: declaration("id TEXT", "id TEXT COLLATE mine") + "PRAGMA schema_version = 9000",
        repair: declaration("id TEXT COLLATE mine", "id TEXT") + "PRAGMA schema_version = 9100",
        names: ["id of table todos has the collation mine"]),
    ]
  }

  private static let script =
    "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT, slug TEXT UNIQUE); CREATE TABLE log(id); "
    + "CREATE TRIGGER logs AFTER INSERT ON todos BEGIN INSERT INTO log VALUES (NEW.id); END"

  private func withSyncedFile(_ script: String = script, _ body: (SyncedFile) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try file.sql.run(script)
      for (pk, title) in [("a", "one"), ("b", "two")] { try await file.serve(pk, ["title": .string(title)]) }
      try await file.serve("n", ["body": "note"], in: "notes")
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two"])
      try await body(file)
    }
  }

  private func status(_ file: SyncedFile) throws -> KizunaSyncReplicaStatus {
    try KizunaSyncReplicaStatus.read(databasePath: file.path)
  }

  @Test(arguments: Breakage.all)
  func theOthersGoOnAndItIsMadeUpFor(breakage: Breakage) async throws {
    try await withSyncedFile { file in
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run(breakage.cause)
        try await file.serve("c", ["title": "three"])
        try await file.serve("b", ["title": "two, later"])
        try await file.server.delete("todos", "a")
        try await file.serve("m", ["body": "second"], in: "notes")
        for _ in 0..<3 { try await engine.sync() }
        #expect(try file.rows("notes", "body") == ["m:second", "n:note"])
        let broken = try status(file)
        let reason = try #require(broken.tablesSetAside["todos"])
        #expect(broken.tablesSetAside.count == 1)
        for name in breakage.names { #expect(reason.contains(name), "\(reason)") }
        #expect(!reason.contains("INSERT INTO") && !reason.contains("dropped from"), "\(reason)")
        #expect(file.text(of: "store.table_set_aside", "reason") == reason)
        #expect(file.events.filter { $0 == "store.table_set_aside" }.count == 1)
        // Nothing is asked for while nothing changed.
        file.transport.forgetCalls()
        try await engine.sync()
        #expect(!file.transport.bodies(of: "pull").contains { $0["cursor"] == "0" })

        try file.sql.run(breakage.repair)
        try await engine.sync()
        #expect(try file.rows() == ["b:two, later", "c:three"])
        #expect(try status(file).tablesSetAside.isEmpty && status(file).tablesToRead.isEmpty)
      }
    }
  }

  @Test func aClientThatStartsGoesOnWithTheOthers() async throws {
    try await withSyncedFile { file in
      try file.sql.run("DROP TABLE log")
      try await file.serve("c", ["title": "three"])
      try await file.serve("m", ["body": "second"], in: "notes")
      try await file.sync()
      #expect(try file.rows("notes", "body") == ["m:second", "n:note"])
      #expect(try status(file).tablesSetAside.keys.sorted() == ["todos"])
      try file.sql.run("CREATE TABLE log(id)")
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two", "c:three"])
      #expect(try status(file).tablesSetAside.isEmpty)
    }
  }

  @Test func whatIsWrittenHereMeanwhileIsSentAndStays() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "CREATE TRIGGER app BEFORE INSERT ON todos WHEN NEW.id = 'c' BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
      try await file.engine { engine in
        try await file.serve("c", ["title": "three"])
        try await engine.sync()
        try file.sql.run(
          "UPDATE todos SET title = 'mine' WHERE id = 'b'; INSERT INTO todos(id, title) VALUES ('d', 'new')")
        try await engine.sync()
        #expect(await file.server.row("todos", "b")?["title"] == "mine")
        #expect(await file.server.row("todos", "d")?["title"] == "new")
        #expect(try await engine.outboxDepth() == 0)
        try await file.serve("a", ["title": "one, later"])
        try file.sql.run("DROP TRIGGER app")
        try await engine.sync()
      }
      #expect(try file.rows() == ["a:one, later", "b:mine", "c:three", "d:new"])
    }
  }

  /// Who undoes transactions may do so because of a row elsewhere.
  @Test func aTableThatUndidATransactionIsTriedAgainInTime() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "CREATE TABLE closed(n); INSERT INTO closed VALUES (1); CREATE TRIGGER app BEFORE INSERT ON todos "
          + "WHEN (SELECT n FROM closed) BEGIN SELECT RAISE(ROLLBACK, 'closed'); END")
      try await file.engine { engine in
        try await file.serve("c", ["title": "three"])
        try await engine.sync()
        await file.clock.advance(by: Replica.firstRetry)
        try await engine.sync()
        #expect(try status(file).tablesSetAside.count == 1)
        try file.sql.run("UPDATE closed SET n = 0")
        await file.clock.advance(by: Replica.firstRetry)
        try await engine.sync()
        #expect(try file.rows() == ["a:one", "b:two"])
        await file.clock.advance(by: Replica.firstRetry)
        try await engine.sync()
        #expect(try file.rows() == ["a:one", "b:two", "c:three"])
      }
    }
  }

  // MARK: One row

  @Test(arguments: [
    "CREATE TRIGGER app BEFORE INSERT ON todos WHEN NEW.id = 'c' BEGIN SELECT json('{'); END",
    "CREATE TRIGGER app BEFORE INSERT ON todos WHEN NEW.id = 'c' BEGIN SELECT abs(-9223372036854775808); END",
    "CREATE TRIGGER app BEFORE INSERT ON todos WHEN NEW.id = 'c' BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE TRIGGER app BEFORE INSERT ON todos WHEN NEW.id = 'c' BEGIN SELECT RAISE(FAIL, 'no'); END",
  ])
  func aRowThatIsRefusedIsParkedAlone(trigger: String) async throws {
    try await withSyncedFile { file in
      try file.sql.run(trigger)
      try await file.serve("c", ["title": "three"])
      try await file.serve("d", ["title": "four"])
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two", "d:four"])
      #expect(try status(file).parkedRows == 1 && status(file).tablesSetAside.isEmpty)
      try file.sql.run("DROP TRIGGER app")
      try await file.serve("d", ["title": "five"])
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:two", "c:three", "d:five"])
      #expect(try status(file).parkedRows == 0)
    }
  }

  @Test func aRowThatMayNotGoIsParkedToo() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "CREATE TRIGGER app BEFORE DELETE ON todos WHEN OLD.id = 'a' BEGIN SELECT RAISE(ABORT, 'kept'); END")
      for pk in ["a", "b"] { try await file.server.delete("todos", pk) }
      try await file.sync()
      #expect(try file.rows() == ["a:one"])
      #expect(try status(file).parkedRows == 1)
      try file.sql.run("DROP TRIGGER app")
      try await file.serve("d", ["title": "four"])
      try await file.sync()
      #expect(try file.rows() == ["d:four"])
      #expect(try status(file).parkedRows == 0)
    }
  }

  @Test func aForeignKeyThatCannotBeCheckedHoldsUpNothing() async throws {
    let script =
      "CREATE TABLE lists(name TEXT); CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, "
      + "title TEXT REFERENCES lists(name))"
    try await withSyncedFile(script) { file in
      try await file.serve("a", ["title": "later"])
      try await file.sync()
      #expect(try file.rows() == ["a:later", "b:two"])
    }
  }

  @Test func aLocalWriteThatUndoesItsTransactionIsRefusedToItsWriter() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        path: folder + "/a.db",
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id, title); "
          + "CREATE TRIGGER app BEFORE INSERT ON todos WHEN NEW.id = 'c' BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
      let error = #expect(throws: KizunaSyncError.self) {
        _ = try fixture.apply(LocalWrite(table: "todos", pk: "c", op: .insert, columns: ["id": "c"]))
      }
      #expect(error?.code == "LOCAL_CONSTRAINT")
      _ = try fixture.apply(LocalWrite(table: "todos", pk: "d", op: .insert, columns: ["id": "d"]))
      #expect(try fixture.queue().count == 1)
    }
  }
}
