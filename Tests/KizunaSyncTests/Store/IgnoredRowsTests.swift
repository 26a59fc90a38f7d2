import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Rows of the server that something in the database drops without an error.
@Suite struct IgnoredRowsTests {
  private func parked(_ file: SyncedFile) throws -> Int {
    try KizunaSyncReplicaStatus.read(databasePath: file.path).parkedRows
  }

  private func withFile(_ declaration: String, _ body: (SyncedFile) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try file.sql.run(declaration)
      try await file.serve("a", ["title": "one"])
      try await file.serve("b", ["title": "two"])
      try await body(file)
    }
  }

  private static let table = "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT);"

  @Test(arguments: ["INSERT", "UPDATE", "DELETE"])
  func aChangeThatATriggerIgnoresIsParkedAndTriedAgain(verb: String) async throws {
    try await withFile(Self.table) { file in
      let row = verb == "DELETE" ? "OLD" : "NEW"
      let ignoring =
        "CREATE TRIGGER deaf BEFORE \(verb) ON todos WHEN \(row).id = 'a' BEGIN SELECT raise(IGNORE); END"
      if verb != "INSERT" { try await file.sync() }
      try file.sql.run(ignoring)
      switch verb {
      case "UPDATE": try await file.serve("a", ["title": "changed"])
      case "DELETE": try await file.server.delete("todos", "a")
      default: break
      }
      try await file.sync()
      // An update that is ignored is made as a delete and an insert.
      #expect(try parked(file) == (verb == "UPDATE" ? 0 : 1))
      #expect(file.text(of: "store.row_parked", "reason")?.contains("RAISE(IGNORE)") == true)
      try file.sql.run("DROP TRIGGER deaf")
      try await file.serve("b", ["title": "other"])
      try await file.sync()
      #expect(try parked(file) == 0)
      let expected = ["INSERT": ["a:one", "b:other"], "UPDATE": ["a:changed", "b:other"], "DELETE": ["b:other"]]
      #expect(try file.rows() == expected[verb])
    }
  }

  /// An unchanged row is no ignored one.
  @Test func rowsThatAreAlreadyThereAreNot() async throws {
    try await withFile(
      Self.table + "CREATE TRIGGER deaf BEFORE INSERT ON todos WHEN NEW.id = 'z' BEGIN SELECT raise(IGNORE); END"
    ) { file in
      try await file.sync()
      try file.sql.run("UPDATE todos SET title = 'mine' WHERE id = 'a'")
      try await file.sync()
      try await file.sync()
      #expect(try parked(file) == 0)
      #expect(try file.rows() == ["a:mine", "b:two"])
    }
  }

  /// The declaration would drop the row, the other row, or everything.
  @Test(arguments: ["IGNORE", "REPLACE", "ROLLBACK", "FAIL"])
  func aDeclaredConflictClauseHasNoSay(clause: String) async throws {
    try await withFile(
      "CREATE TABLE todos(id TEXT PRIMARY KEY ON CONFLICT \(clause), owner_id TEXT, "
        + "title TEXT UNIQUE ON CONFLICT \(clause))"
    ) { file in
      try await file.sync()
      try await file.serve("c", ["title": "one"])
      try await file.serve("d", ["title": "four"])
      try await file.sync()
      #expect(try parked(file) == 1)
      #expect(try file.rows() == ["a:one", "b:two", "d:four"])
    }
  }

  /// An upsert would put its own conflict clause in the place of those in the app's triggers.
  @Test func conflictClausesInTriggersOfTheAppHoldGood() async throws {
    let record = "INSERT OR REPLACE INTO newest VALUES (NEW.id, NEW.title)"
    try await withFile(
      Self.table + "CREATE TABLE newest(id PRIMARY KEY, title); CREATE TABLE first(id PRIMARY KEY, title);"
        + "CREATE TRIGGER app1 AFTER INSERT ON todos BEGIN \(record); END;"
        + "CREATE TRIGGER app2 AFTER UPDATE ON todos BEGIN \(record); "
        + "INSERT OR IGNORE INTO first VALUES (NEW.id, OLD.title); END;"
    ) { file in
      try await file.sync()
      for title in ["2", "3"] {
        try await file.serve("a", ["title": .string(title)])
        try await file.sync()
      }
      try file.sql.run("UPDATE todos SET title = 'mine' WHERE id = 'b'")
      try await file.sync()
      #expect(try parked(file) == 0)
      #expect(try file.rows() == ["a:3", "b:mine"])
      #expect(try file.rows("newest") == ["a:3", "b:mine"])
      #expect(try file.rows("first") == ["a:one", "b:two"])
    }
  }
}
