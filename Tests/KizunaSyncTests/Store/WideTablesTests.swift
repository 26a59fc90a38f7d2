import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Tables with hundreds of columns, and with more than can be synced.
@Suite struct WideTablesTests {
  private static func names(_ count: Int) -> [String] { (0..<count).map { "c\($0)" } }

  private static func row(_ count: Int) -> [String: JSONValue] {
    Dictionary(uniqueKeysWithValues: names(count).enumerated().map { ($1, $0 % 2 == 0 ? .int($0) : .string("\($0)")) })
  }

  private static func declaration(_ table: String, _ count: Int) -> String {
    "CREATE TABLE \(table)(id TEXT PRIMARY KEY, owner_id TEXT, \(names(count).joined(separator: ", ")))"
  }

  /// - Parameter script: run on the file before the first sync.
  private func withFile(_ script: String? = nil, _ body: (SyncedFile) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      if let script {
        let sql = try file.sql
        try sql.run(script)
        sql.close()
      }
      try await file.serve("t", ["title": "other"])
      try await body(file)
    }
  }

  /// In both directions, with every column; an update names the columns that changed.
  private func expectInStep(_ file: SyncedFile, columns: Int) async throws {
    let last = "c\(columns - 1)"
    #expect(try file.rows("notes", last).first?.hasPrefix("n:") == true)
    #expect(file.text(of: "store.table_set_aside", "reason") == nil)
    try file.sql.run("UPDATE notes SET \(last) = 'new', c0 = 5; INSERT INTO notes(id, c1) VALUES ('m', 'mine')")
    try await file.sync()
    #expect(await file.server.row("notes", "n")?[last] == "new")
    #expect(await file.server.row("notes", "n")?["c0"] == 5)
    #expect(await file.server.row("notes", "n")?["c1"] == "1")
    #expect(await file.server.row("notes", "m")?["c1"] == "mine")
    try await file.serve("n", [last: "theirs"], in: "notes")
    try await file.sync()
    #expect(try file.rows("notes", last) == ["m:NULL", "n:theirs"])
    try file.sql.run("DELETE FROM notes WHERE id = 'n'")
    try await file.sync()
    #expect(await file.server.row("notes", "n") == nil)
    #expect(try file.rows() == ["t:other"])
  }

  /// With the key and the owner.
  @Test(arguments: [400, TableDeclaration.maximumColumns - 2])
  func aRowTeachesManyColumnsAtOnce(count: Int) async throws {
    try await withFile { file in
      try await file.sync()
      try await file.serve("n", Self.row(count), in: "notes")
      let before = try file.sql.integer("PRAGMA schema_version")
      try await file.sync()
      // Each step makes SQLite, and every other program, read the whole schema again.
      #expect(try file.sql.integer("PRAGMA schema_version") - before < 60)
      try await expectInStep(file, columns: count)
    }
  }

  /// With triggers of its own its rows are written by other statements.
  @Test(arguments: [600, TableDeclaration.maximumColumns - 2], [false, true])
  func anAppsOwnTableMayBeWide(count: Int, hasTrigger: Bool) async throws {
    let trigger = hasTrigger ? "; CREATE TRIGGER mine AFTER UPDATE ON notes BEGIN SELECT 1; END" : ""
    try await withFile(Self.declaration("notes", count) + trigger) { file in
      try await file.serve("n", Self.row(count), in: "notes")
      try await file.sync()
      try await expectInStep(file, columns: count)
    }
  }

  /// The journal grows while it holds writes, and while rows and an index are in the table.
  @Test func aTableGrowsWithWhatIsInIt() async throws {
    try await withFile { file in
      try await file.serve("n", ["c0": 0], in: "notes")
      try await file.sync()
      try file.sql.run(
        "CREATE INDEX mine ON notes(c0); UPDATE todos SET title = 'queued'; INSERT INTO notes(id) VALUES ('k')")
      try await file.serve("n", Self.row(40), in: "notes")
      try await file.sync()
      #expect(await file.server.row("todos", "t")?["title"] == "queued")
      #expect(await file.server.row("notes", "k") != nil)
      #expect(try file.rows("notes", "c39") == ["k:NULL", "n:39"])
      #expect(try file.sql.texts("SELECT name FROM sqlite_schema WHERE name = 'mine'") == ["mine"])
      try file.sql.run("UPDATE notes SET c39 = 'new' WHERE id = 'n'")
      try await file.sync()
      #expect(await file.server.row("notes", "n")?["c39"] == "new")
    }
  }

  /// What stood in the journal stands there afterwards, under the same numbers.
  @Test func aWiderJournalKeepsItsRows() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("INSERT INTO todos(id, owner_id) VALUES ('a', 'x'); UPDATE todos SET owner_id = 'y'")
    let select = "SELECT seq || op || coalesce(n0, '') || coalesce(o1, '') FROM _kizunasync_capture ORDER BY seq"
    let before = try fixture.database.map(select) { $0.string(0) }
    #expect(before.count == 2)
    let width = try fixture.replica.journalWidth()
    try fixture.replica.widenJournal(to: width + 200)
    #expect(try fixture.replica.journalWidth() == width + 200)
    #expect(try fixture.database.map(select) { $0.string(0) } == before)
    try fixture.sql("UPDATE todos SET owner_id = 'z'")
    #expect(try fixture.queue().count == 3)
  }

  // MARK: Too many

  private let tooMany = "columns, and at most 997 can be synced"

  @Test func aTableThatIsTooWideOnTheServerIsSetAsideAlone() async throws {
    try await withFile { file in
      try await file.serve("n", Self.row(1_500), in: "notes")
      try await file.sync()
      #expect(try file.rows() == ["t:other"])
      let reason = try #require(file.text(of: "store.table_set_aside", "reason"))
      #expect(reason.contains("the table notes has 1502 \(tooMany)"), "\(reason)")
      try await file.serve("t", ["title": "later"])
      try await file.sync()
      #expect(try file.rows() == ["t:later"])
      // Those who write there know nothing of it.
      try file.sql.run("INSERT INTO notes(id) VALUES ('m')")
      try await file.sync()
      #expect(await file.server.row("notes", "m") != nil)
    }
  }

  @Test func anAppsTableThatIsTooWideIsRefusedAtTheStart() async throws {
    try await withFile(Self.declaration("notes", 996)) { file in
      let error = await #expect(throws: KizunaSyncError.self) { try await file.sync() }
      #expect(error?.code == "CONFIG_INVALID")
      #expect(error?.message.contains("the table notes has 998 \(tooMany)") == true, "\(error?.message ?? "")")
    }
  }

  @Test func anAppsTableThatBecomesTooWideIsSetAsideAlone() async throws {
    try await withFile { file in
      try await file.serve("n", ["c0": 0], in: "notes")
      try await file.engine { engine in
        try await engine.sync()
        let sql = try file.sql
        try sql.run("DROP TABLE notes; " + Self.declaration("notes", 1_200))
        sql.close()
        try await file.serve("t", ["title": "later"])
        try await engine.sync()
        #expect(try file.rows() == ["t:later"])
        let reason = try #require(file.text(of: "store.table_set_aside", "reason"))
        #expect(reason.contains(tooMany), "\(reason)")
      }
    }
  }

  @Test(arguments: [998, 1_001, 2_500])
  func tooManyConfiguredColumnsAreRefused(count: Int) {
    let columns = Dictionary(uniqueKeysWithValues: Self.names(count).map { ($0, ColumnKind.text) })
    let error = #expect(throws: KizunaSyncError.self) {
      try ReplicaFixture(["todos": KizunaSyncTableConfig(columns: columns)])
    }
    #expect(error?.code == "CONFIG_INVALID")
    #expect(error?.message.contains("the table todos has ") == true)
  }

  @Test func aWriteThatNamesTooManyColumnsIsRefusedAlone() throws {
    let fixture = try ReplicaFixture()
    let error = #expect(throws: KizunaSyncError.self) {
      try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .insert, columns: Self.row(1_100)))
    }
    #expect(error?.message.contains(tooMany) == true)
    #expect(fixture.replica.setAside.isEmpty)
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .insert, columns: Self.row(10)))
    #expect(try fixture.queue().count == 1)
  }

  /// Columns come and go; their places in the journal are used again.
  @Test func columnsThatAreGoneTakeNoRoom() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("UPDATE _kizunasync_tables SET slots = \(TableDeclaration.maximumColumns - 1)")
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .insert, columns: Self.row(5)))
    try fixture.sql("UPDATE todos SET c4 = 'new'")
    #expect(try fixture.queue().last == #"update a {"c4":"new"}"#)
  }

  // MARK: Expressions

  /// SQLite's limit is 1,000.
  @Test(arguments: [1, 2, 64, 65, 4_096, 5_000])
  func aChainIsNotDeep(count: Int) throws {
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    defer { database.close() }
    let terms = (1...count).map { "?1 = \($0)" }
    #expect(try database.value("SELECT " + SQL.chain(terms, "OR"), .integer(Int64(count))) == 1)
    #expect(try database.value("SELECT " + SQL.chain(terms, "OR"), .integer(0)) == 0)
    #expect(try database.value("SELECT " + SQL.chain(terms.map { "NOT \($0)" }, "AND"), .integer(0)) == 1)
  }
}
