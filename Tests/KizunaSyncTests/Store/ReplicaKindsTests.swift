import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// Kinds: those the configuration declares stay, whatever values come.
@Suite struct ReplicaKindsTests {
  private func types(_ fixture: ReplicaFixture, _ column: String) throws -> [String] {
    try fixture.database.map("SELECT typeof(\(column)) || ' ' || \(column) FROM notes ORDER BY id") { $0.string(0) }
  }

  private func kind(_ fixture: ReplicaFixture, _ column: String) throws -> ColumnKind? {
    try fixture.replica.layout("notes")[column]?.kind
  }

  @Test func aWrongValueOfASQLWriterDoesNotOverruleTheConfiguration() throws {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig(columns: ["done": .boolean])])
    var server = ReplicaServer(["notes": SyncTable(columns: ["done": .boolean])])
    try fixture.sql("INSERT INTO notes(id, done) VALUES ('a', 1), ('b', 0)")
    try server.sync(fixture.replica)
    try fixture.sql("UPDATE notes SET done = 'true' WHERE id = 'b'")
    _ = try fixture.queue()
    try fixture.replica.transaction(applying: true) { try fixture.replica.settle("notes", pk: "b") }
    #expect(try kind(fixture, "done") == .boolean)
    #expect(try types(fixture, "done") == ["integer 1", "text true"])
    #expect(fixture.warnings.withLock { $0 } == ["store.kind_mismatch"])
    // The server takes the text for what it says, and its word comes back.
    #expect(try server.sync(fixture.replica) == [])
    #expect(try types(fixture, "done") == ["integer 1", "integer 1"])
  }

  @Test(arguments: [
    (ColumnKind.boolean, "\"yes\"", "text yes"), (.boolean, "7", "integer 7"), (.boolean, "[1]", "text [1]"),
    (.text, "true", "integer 1"), (.text, "{\"k\":1}", "text {\"k\":1}"), (.number, "[]", "text []"),
    (.numeric, "false", "integer 0"),
  ])
  func aWrongValueOfTheServerIsReportedAndTheKindStays(declared: ColumnKind, value: String, cell: String) throws {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig(columns: ["c": declared])])
    for cursor in ["1", "2"] {
      try fixture.pull([("a", ["c": try JSONValue(parsing: value)])], cursor: cursor, table: "notes")
    }
    #expect(try kind(fixture, "c") == declared)
    #expect(try types(fixture, "c") == [cell])
    #expect(fixture.warnings.withLock { $0 } == ["store.kind_mismatch"])
  }

  @Test func whatTheServerShowedIsNotOverruledByATextThatTheCellCanHold() throws {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig()])
    try fixture.pull([("a", ["done": true]), ("b", ["done": false])], cursor: "1", table: "notes")
    try fixture.sql("UPDATE notes SET done = 'true' WHERE id = 'b'")
    _ = try fixture.queue()
    try fixture.replica.transaction(applying: true) { try fixture.replica.settle("notes", pk: "b") }
    #expect(try kind(fixture, "done") == .boolean)
    #expect(try types(fixture, "done") == ["integer 1", "text true"])
    #expect(try fixture.queue() == ["update b {\"done\":\"true\"}"])
  }

  @Test func aKindDeclaredLaterRewritesTheCells() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/a.db"
      let learned = try ReplicaFixture(["notes": KizunaSyncTableConfig()], path: path)
      try learned.pull([("a", ["c": true]), ("b", ["c": [1]])], cursor: "1", table: "notes")
      #expect(try types(learned, "c") == ["text true", "text [1]"])
      learned.replica.close()
      let declared = try ReplicaFixture(["notes": KizunaSyncTableConfig(columns: ["c": .boolean])], path: path)
      #expect(try types(declared, "c") == ["integer 1", "text [1]"])
      declared.replica.close()
    }
  }

  @Test func aKeyTheAppsTableCannotHoldParksTheRow() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["notes": KizunaSyncTableConfig()], path: "\(folder)/a.db",
        preparing: "CREATE TABLE notes(id INTEGER PRIMARY KEY, a)")
      try fixture.pull([("x", ["a": 1]), ("7", ["a": 1])], cursor: "1", table: "notes")
      #expect(try fixture.rows("notes").keys.sorted() == ["7"])
      #expect(fixture.warnings.withLock { $0 } == ["store.row_parked"])
      fixture.replica.close()
    }
  }
}
