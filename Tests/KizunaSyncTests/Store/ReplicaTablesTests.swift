import HostKit
import Testing

@testable import KizunaSync

/// Managed and app-owned tables, columns that come late, kinds that are learned.
@Suite struct ReplicaTablesTests {
  private let todos = ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))]

  // MARK: Managed

  @Test func columnsComeWithTheRowsThatBringThem() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["title": "x", "done": false])], cursor: "1")
    try fixture.pull([("b", ["title": "y", "likes": 3])], cursor: "2")
    #expect(try fixture.rows()["a"] == ["id": "a", "title": "x", "done": false])
    #expect(try fixture.rows()["b"] == ["id": "b", "title": "y", "likes": 3])
    try fixture.pull([("a", ["title": "x", "likes": nil])], cursor: "3")
    #expect(try fixture.rows()["a"] == ["id": "a", "title": "x", "likes": nil])
  }

  @Test func aPlainInsertMintsAnIDAndFillsTheOwner() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["title": "x"])], cursor: "1")
    try fixture.sql("INSERT INTO todos(title) VALUES ('new')")
    let queue = try fixture.queue()
    #expect(queue.count == 1 && queue[0].hasSuffix("{\"owner_id\":\"\(owner)\",\"title\":\"new\"}"))
    let id = queue[0].split(separator: " ")[1]
    #expect(RandomUUID.isWellFormed(String(id)))
    #expect(try fixture.rows()[String(id)]?["owner_id"] == .string(owner))
  }

  @Test func aUuidInUpperCaseIsSpelledAgainInPlace() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("INSERT INTO todos(id) VALUES ('ABCDEF01-2345-4789-ABCD-EF0123456789')")
    #expect(try fixture.queue().count == 1)
    #expect(try Array(fixture.rows().keys) == ["abcdef01-2345-4789-abcd-ef0123456789"])
  }

  @Test(arguments: ["NULL", "''", "x'00'", "1.5"])
  func aKeyThatCannotBeSpelledIsRefused(key: String) throws {
    let fixture = try ReplicaFixture()
    #expect(throws: SQLiteError.self) { try fixture.sql("INSERT INTO todos(id) VALUES (\(key))") }
    #expect(try fixture.queue() == [])
  }

  @Test func pullOnlyTablesRefuseWritesAndSoftDeletedOnesDeletes() throws {
    let fixture = try ReplicaFixture([
      "notices": KizunaSyncTableConfig(syncMode: .pullOnly),
      "notes": KizunaSyncTableConfig(softDeleteColumn: "deleted_at"),
    ])
    try fixture.pull([("a", ["title": "x"])], cursor: "1", table: "notices")
    try fixture.pull([("a", ["title": "x"])], cursor: "2", table: "notes")
    for statement in [
      "INSERT INTO notices(id) VALUES ('b')", "UPDATE notices SET title = 'y'", "DELETE FROM notices",
      "DELETE FROM notes",
      "UPDATE notes SET id = 'b'",
    ] {
      #expect(throws: SQLiteError.self, "\(statement)") { try fixture.sql(statement) }
    }
    try fixture.sql("UPDATE notes SET deleted_at = 'now'")
    #expect(try fixture.queue() == ["update a {\"deleted_at\":\"now\"}"])
  }

  @Test func aColumnAddedByAnotherProgramIsSeenAtOnce() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["title": "x"])], cursor: "1")
    try fixture.sql("ALTER TABLE todos ADD COLUMN extra; UPDATE todos SET extra = 'e', title = 'y' WHERE id = 'a'")
    #expect(try fixture.queue() == ["update a {\"extra\":\"e\",\"title\":\"y\"}"])
    try fixture.sql("UPDATE todos SET extra = 'f'")
    #expect(try fixture.queue().last == "update a {\"extra\":\"f\"}")
  }

  // MARK: Kinds

  @Test func aKindThatChangesRewritesTheCells() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": true]), ("b", ["v": false])], cursor: "1")
    #expect(try fixture.database.value("SELECT v FROM todos WHERE id = 'a'") == 1)
    try fixture.pull([("c", ["v": ["k": 1]])], cursor: "2")
    #expect(try fixture.database.value("SELECT v FROM todos WHERE id = 'a'") == "true")
    #expect(try fixture.rows().mapValues { $0["v"] } == ["a": true, "b": false, "c": ["k": 1]])
    #expect(try fixture.queue() == [])
  }

  @Test func aGuessGivesWayToTheServer() throws {
    let fixture = try ReplicaFixture()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .insert, columns: ["id": "a", "v": "text"]))
    try fixture.pull([("b", ["v": ["k": 1]])], cursor: "1")
    #expect(try fixture.rows().mapValues { $0["v"] } == ["a": "text", "b": ["k": 1]])
  }

  @Test func integerKeysAreIntegersInSQL() throws {
    let fixture = try ReplicaFixture(["seats": KizunaSyncTableConfig(key: ["hall", "seat"])])
    try fixture.pull(
      [("[\"1\", \"12\"]", ["hall": 1, "seat": 12, "who": "x"])], cursor: "1", table: "seats")
    #expect(try fixture.database.value("SELECT typeof(hall) FROM seats WHERE hall = 1 AND seat = 12") == "integer")
    try fixture.sql("UPDATE seats SET who = 'y' WHERE seat = 12; INSERT INTO seats(hall, seat, who) VALUES (2, 1, 'z')")
    #expect(
      try fixture.queue() == ["update [\"1\", \"12\"] {\"who\":\"y\"}", "insert [\"2\", \"1\"] {\"who\":\"z\"}"])
  }

  // MARK: App-owned

  @Test func anAppsTableIsFilledAndNeverAltered() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        todos, path: folder + "/a.db",
        preparing:
          "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT NOT NULL, done BOOLEAN, mine TEXT)")
      let before = try fixture.database.value("SELECT sql FROM sqlite_schema WHERE name = 'todos'")
      try fixture.pull([("a", ["title": "x", "done": true, "server_only": 1])], cursor: "1")
      #expect(try fixture.rows()["a"] == ["id": "a", "title": "x", "done": true])
      #expect(try fixture.database.value("SELECT sql FROM sqlite_schema WHERE name = 'todos'") == before)
      #expect(fixture.warnings.withLock { $0 }.filter { $0 == "store.column_ignored" }.count == 1)
      try fixture.sql("UPDATE todos SET done = 0")
      #expect(try fixture.queue() == ["update a {\"done\":false}"])
    }
  }

  @Test func rowsThatWereThereAreQueuedNotLost() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        todos, path: folder + "/a.db",
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, title TEXT, owner_id TEXT); "
          + "INSERT INTO todos(id, title) VALUES ('old', 'kept')")
      #expect(try fixture.queue() == ["insert old {\"owner_id\":\"\(owner)\",\"title\":\"kept\"}"])
      try fixture.pull([("a", ["title": "x"])], cursor: "1")
      #expect(try fixture.rows().keys.sorted() == ["a", "old"])
    }
  }

  @Test func rowsThatWereThereWaitForTheirOwner() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        todos, path: folder + "/a.db", signedIn: false,
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT); INSERT INTO todos(id) VALUES ('old')")
      #expect(try fixture.queue() == [])
      _ = try fixture.replica.meet(owner: owner)
      #expect(try fixture.queue() == ["insert old {\"owner_id\":\"\(owner)\"}"])
      #expect(try fixture.rows()["old"]?["owner_id"] == .string(owner))
    }
  }

  @Test func localOnlyColumnsStayHere() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        todos, path: folder + "/a.db", localOnly: ["stars"],
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, title TEXT, owner_id TEXT, stars INTEGER)")
      try fixture.pull([("a", ["title": "x"])], cursor: "1")
      try fixture.sql("UPDATE todos SET stars = 5")
      #expect(try fixture.queue() == [])
      try fixture.pull([("a", ["title": "y"])], cursor: "2")
      #expect(try fixture.database.value("SELECT stars FROM todos") == 5)
      _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["title": "z", "stars": 4]))
      #expect(try fixture.queue() == ["update a {\"title\":\"z\"}"])
      #expect(try fixture.database.value("SELECT stars FROM todos") == 4)
    }
  }

  @Test(arguments: [
    ("CREATE VIEW todos AS SELECT 1 AS id", "view"), ("CREATE VIRTUAL TABLE todos USING fts5(id)", "virtual table"),
    ("CREATE TABLE todos(name TEXT)", "no column id"),
    ("CREATE TABLE todos(id TEXT, name TEXT)", "neither a primary key nor a unique index"),
    ("CREATE TABLE todos(id TEXT PRIMARY KEY, name TEXT); CREATE UNIQUE INDEX u ON todos(lower(name))", "expression"),
    ("CREATE TABLE todos(id TEXT PRIMARY KEY, price REAL)", "rounds"),
    ("CREATE TABLE todos(id TEXT COLLATE nocase PRIMARY KEY)", "column id of table todos has the collation nocase"),
    ("CREATE TABLE todos(id TEXT COLLATE RTRIM PRIMARY KEY)", "RTRIM"),
    ("CREATE TABLE todos(id TEXT COLLATE NOCASE, a); CREATE UNIQUE INDEX i ON todos(id COLLATE BINARY)", "NOCASE"),
    ("CREATE TABLE todos(id TEXT, a); CREATE UNIQUE INDEX i ON todos(id COLLATE NOCASE)", "index i on the key"),
    (
      "CREATE TABLE todos(id TEXT PRIMARY KEY); CREATE UNIQUE INDEX i ON todos(id COLLATE NOCASE)", "index i on the key"
    ),
    ("CREATE TABLE todos(id TEXT, gone); CREATE UNIQUE INDEX i ON todos(id) WHERE gone IS NULL", "is partial"),
    ("CREATE TABLE todos(id STRING PRIMARY KEY)", "declared STRING"),
    ("CREATE TABLE todos(id REAL PRIMARY KEY)", "declared REAL"),
    ("CREATE TABLE todos(id DECIMAL(10,2) PRIMARY KEY)", "declare it TEXT"),
    ("CREATE TABLE todos(id BOOLEAN PRIMARY KEY)", "declared BOOLEAN"),
    ("CREATE TABLE todos(id UUID PRIMARY KEY)", "declared UUID"),
    ("CREATE TABLE todos(id ANY PRIMARY KEY)", "declared ANY"),
    ("CREATE TABLE todos(id BLOB PRIMARY KEY) STRICT", "declared BLOB"),
    ("CREATE TABLE todos(a TEXT PRIMARY KEY, id TEXT AS (a) STORED UNIQUE)", "generated column"),
    ("CREATE TABLE todos(a TEXT PRIMARY KEY, id TEXT AS (a))", "generated column"),
  ])
  func aTableThatDoesNotFitIsRefusedWithTheReason(script: String, reason: String) throws {
    try withScratchFolder { folder in
      let error = #expect(throws: KizunaSyncError.self) {
        _ = try ReplicaFixture(
          ["todos": KizunaSyncTableConfig(columns: reason == "rounds" ? ["price": .numeric] : [:])],
          path: folder + "/a.db",
          preparing: script)
      }
      #expect(error?.code == "CONFIG_INVALID")
      #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }
  }

  @Test(arguments: [
    "CREATE TABLE todos(id TEXT PRIMARY KEY, a)", "CREATE TABLE todos(id PRIMARY KEY, a)",
    "CREATE TABLE todos(id BLOB PRIMARY KEY, a)", "CREATE TABLE todos(id VARCHAR(36) PRIMARY KEY, a)",
    "CREATE TABLE todos(id TEXT COLLATE BINARY PRIMARY KEY, a TEXT COLLATE NOCASE)",
    "CREATE TABLE todos(id TEXT, a); CREATE UNIQUE INDEX whole ON todos(id); "
      + "CREATE UNIQUE INDEX part ON todos(id) WHERE a = 1",
    "CREATE TABLE todos(id ANY PRIMARY KEY, a ANY) STRICT", "CREATE TABLE todos(id TEXT PRIMARY KEY, a INT) STRICT",
  ])
  func everySpellingOfAKeyIsARowOfItsOwn(script: String) throws {
    try withScratchFolder { folder in
      let keys = ["Abc", "ABC", "abc ", "1e3", "1000", "0123", "123", "1.50", "1.5", "12345678901234567890"]
      let fixture = try ReplicaFixture(["todos": KizunaSyncTableConfig()], path: folder + "/a.db", preparing: script)
      try fixture.pull(keys.map { ($0, ["a": 1]) }, cursor: "1")
      try fixture.pull(keys.map { ($0, ["a": 2]) }, cursor: "2")
      #expect(try fixture.rows().keys.sorted() == keys.sorted())
      #expect(try fixture.rows().values.allSatisfy { $0["a"].map { $0 == 2 || $0 == "2" } ?? false })
      try fixture.pull(tombstones: keys, cursor: "3")
      #expect(try fixture.rows().isEmpty)
    }
  }

  /// What would become another key waits; the row of that other key is not touched.
  @Test(arguments: ["INTEGER PRIMARY KEY", "INT PRIMARY KEY", "BIGINT UNIQUE", "INT NOT NULL PRIMARY KEY"])
  func aKeyThatAnIntegerColumnWouldAlterIsParked(declaration: String) throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["todos": KizunaSyncTableConfig()], path: folder + "/a.db",
        preparing: "CREATE TABLE todos(id \(declaration), a)")
      try fixture.pull([("1000", ["a": 1]), ("7", ["a": 1])], cursor: "1")
      let odd = ["1e3", "007", "+7", " 7", "1.5", "12345678901234567890", "7.0"]
      try fixture.pull(odd.map { ($0, ["a": 2]) }, cursor: "2")
      #expect(try fixture.rows() == ["1000": ["id": 1000, "a": 1], "7": ["id": 7, "a": 1]])
      #expect(
        try fixture.database.map("SELECT pk FROM _kizunasync_parked ORDER BY pk") { $0.string(0) } == odd.sorted())
      #expect(
        try fixture.database.value("SELECT error FROM _kizunasync_parked")?.text?.contains("declare id as TEXT") == true
      )
      #expect(try fixture.queue() == [])
      try fixture.pull(tombstones: odd, cursor: "3")
      #expect(try fixture.rows().count == 2)
      #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_parked"))
      #expect(try fixture.apply(LocalWrite(table: "todos", pk: "007", op: .update, columns: ["a": 3])) == "7")
      let refused = #expect(throws: KizunaSyncError.self) {
        try fixture.apply(LocalWrite(table: "todos", pk: "1e3", op: .update, columns: ["a": 3]))
      }
      #expect(refused?.code == "LOCAL_CONSTRAINT")
    }
  }

  @Test(arguments: ["excluded", "stored", "new", "old", "t", "d", "j", "select", "main", "temp", "a\"b", "it's"])
  func aTableMayHaveAnyName(name: String) throws {
    let fixture = try ReplicaFixture([name: KizunaSyncTableConfig()])
    let quoted = SQL.name(name)
    try fixture.pull([("k", ["a": 1]), ("l", ["a": 1])], cursor: "1", table: name)
    try fixture.pull([("k", ["a": 2])], cursor: "2", table: name)
    #expect(try fixture.rows(name) == ["k": ["id": "k", "a": 2], "l": ["id": "l", "a": 1]])
    try fixture.sql(
      "UPDATE \(quoted) SET a = 3 WHERE id = 'k'; INSERT OR REPLACE INTO \(quoted)(id, a) VALUES ('l', 4)")
    try fixture.sql("UPDATE OR REPLACE \(quoted) SET id = 'l' WHERE id = 'k'; DELETE FROM \(quoted)")
    #expect(try Set(fixture.queue()).isSuperset(of: ["delete k {}", "delete l {}"]))
    try fixture.pull(tombstones: ["k", "l"], cursor: "3", table: name)
    #expect(try fixture.rows(name).isEmpty)
  }

  // MARK: Constraints while applying

  @Test func rowsThatSwapAUniqueValueBothFit() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        todos, path: folder + "/a.db",
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, slug TEXT UNIQUE, owner_id TEXT)")
      try fixture.pull([("a", ["slug": "one"]), ("b", ["slug": "two"])], cursor: "1")
      try fixture.pull([("a", ["slug": "two"]), ("b", ["slug": "one"])], cursor: "2")
      #expect(try fixture.rows().mapValues { $0["slug"] } == ["a": "two", "b": "one"])
      #expect(try fixture.queue() == [])
    }
  }

  @Test func oneRowThatIsRefusedHoldsUpNothing() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        todos, path: folder + "/a.db",
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, n INTEGER CHECK (n < 10), slug TEXT UNIQUE, owner_id TEXT)")
      try fixture.pull(
        [("a", ["n": 1, "slug": "s"]), ("b", ["n": 99]), ("c", ["n": 3, "slug": "s"])], cursor: "7")
      #expect(try fixture.replica.durableCursor() == "7")
      #expect(try fixture.rows().keys.sorted() == ["a"])
      #expect(fixture.warnings.withLock { $0 }.filter { $0 == "store.row_parked" }.count == 2)
      // The next change of the table lets the row in.
      try fixture.sql("UPDATE todos SET slug = 't' WHERE id = 'a'")
      _ = try fixture.queue()
      #expect(try fixture.rows()["c"]?["n"] == 3)
      try fixture.pull([("b", ["n": 9])], cursor: "8")
      #expect(try fixture.rows()["b"]?["n"] == 9)
      #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_parked"))
    }
  }

  @Test func anAppliedDeleteDoesNotCascade() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["parents": KizunaSyncTableConfig(), "children": KizunaSyncTableConfig()], path: folder + "/a.db",
        preparing: "CREATE TABLE parents(id TEXT PRIMARY KEY); "
          + "CREATE TABLE children(id TEXT PRIMARY KEY, parent TEXT REFERENCES parents(id) ON DELETE CASCADE)")
      try fixture.pull([("p", [:])], cursor: "1", table: "parents")
      try fixture.pull([("c", ["parent": "p"])], cursor: "2", table: "children")
      try fixture.pull(tombstones: ["p"], cursor: "3", table: "parents")
      #expect(try fixture.rows("children").keys.sorted() == ["c"])
      #expect(fixture.warnings.withLock { $0 }.contains("store.foreign_keys"))
      // A delete through the library does, and the cascade is queued like any other change.
      try fixture.pull([("p", [:])], cursor: "4", table: "parents")
      _ = try fixture.apply(LocalWrite(table: "parents", pk: "p", op: .delete))
      #expect(try Set(fixture.queue()) == ["delete p {}", "delete c {}"])
    }
  }

  @Test func updateTriggersOfTheAppFireForRealChangesOnly() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        todos, path: folder + "/a.db",
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, title TEXT, owner_id TEXT); CREATE TABLE seen(id TEXT); "
          + "CREATE TRIGGER app AFTER UPDATE ON todos BEGIN INSERT INTO seen VALUES (NEW.id); END")
      try fixture.pull([("a", ["title": "x"]), ("b", ["title": "x"])], cursor: "1")
      try fixture.pull([("a", ["title": "x"]), ("b", ["title": "y"])], cursor: "2")
      #expect(try fixture.database.map("SELECT id FROM seen") { $0.string(0) } == ["b"])
    }
  }
}
