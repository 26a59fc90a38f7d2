import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// Whatever a program writes by SQL on one host, both files hold the same values of the same SQLite types in the end.
@Suite struct EqualValuesTests {
  struct Shape: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var kind: ColumnKind?
    /// What the apps declare the column as; nil for a table the replica makes.
    var declared: String?
    var server: ColumnType?

    static let all: [Shape] =
      [nil, .number, .numeric, .text].flatMap { kind in
        [nil, .double, .numeric, .bigint, .text].map { server in
          Shape(
            testDescription: (kind?.rawValue ?? "no kind") + " of " + (server?.rawValue ?? "no type"),
            kind: kind,
            server: server)
        }
      }
      + (["", "REAL", "INTEGER", "NUMERIC", "TEXT", "BOOLEAN"] as [String]).map { declared in
        Shape(testDescription: "declared " + declared, declared: declared, server: .numeric)
      }
  }

  static let values = [
    "1.0", "1", "0.0", "-0.0", "-3.0", "1.5", "1e300", "1e15", "1e16", "1e17", "9007199254740993", "9007199254740993.0",
    "9223372036854775807", "9223372036854775808", "0.1", "1e-7", "'1.0'", "'1.50'", "'x'", "''", "x'00ff'", "9e999",
    "-9e999", "NULL", "-9223372036854775808", "123456789012345678901234567890",
  ]

  @Test(arguments: Shape.all)
  func bothHostsHoldTheSame(shape: Shape) throws {
    try withScratchFolder { folder in
      let config = KizunaSyncTableConfig(columns: shape.kind.map { ["v": $0] } ?? [:])
      let hosts = try ["a", "b"].map { name in
        try ReplicaFixture(
          ["notes": config], path: "\(folder)/\(name).db",
          preparing: shape.declared.map { "CREATE TABLE notes(id TEXT PRIMARY KEY, v \($0))" })
      }
      defer { for host in hosts { host.replica.close() } }
      try hosts[0].replica.transaction { try hosts[0].replica.ensure(["v"], of: "notes") }
      var server = ReplicaServer(["notes": SyncTable(columns: shape.server.map { ["v": $0] } ?? [:])])
      func compare(_ what: String) throws {
        // The second pull may bring the writer what its own write became.
        for host in hosts + hosts { try server.sync(host.replica) }
        let held = try hosts.map { host in
          try host.database.map("SELECT id, typeof(v), quote(v) FROM notes ORDER BY id") { row in
            (0..<3).map { row.string($0) }.joined(separator: " ")
          }
        }
        #expect(held[0] == held[1], "\(what)")
      }
      for (index, value) in Self.values.enumerated() {
        try hosts[0].sql("INSERT INTO notes(id, v) VALUES ('\(index)', \(value))")
      }
      try compare("inserted")
      // The same number once more, as SQLite's other type.
      try hosts[0].sql(
        "UPDATE notes SET v = CAST(v AS REAL) WHERE typeof(v) = 'integer' AND v BETWEEN -1000000 AND 1000000")
      try compare("the other type")
      for (index, value) in Self.values.enumerated() {
        try hosts[0].sql("UPDATE notes SET v = \(value) WHERE id = '\(Self.values.count - 1 - index)'")
      }
      try compare("updated")
    }
  }

  /// Texts that the column's collation holds equal are different all the same.
  @Test(arguments: ["", "CREATE TRIGGER app AFTER UPDATE ON notes BEGIN SELECT 1; END"])
  func collationsHaveNoSay(trigger: String) throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["notes": KizunaSyncTableConfig()], path: "\(folder)/a.db",
        preparing: "CREATE TABLE notes(id TEXT PRIMARY KEY, a TEXT COLLATE NOCASE, b COLLATE RTRIM);" + trigger)
      defer { fixture.replica.close() }
      for (number, value) in ["a", "A", "A ", "a"].enumerated() {
        let row: JSONValue = ["a": .string(value), "b": .string(value)]
        try fixture.pull([("k", row)], cursor: "\(number + 1)", table: "notes")
        #expect(try fixture.database.value("SELECT a || '|' || b || '|' FROM notes") == .text("\(value)|\(value)|"))
      }
    }
  }

  @Test func aRowThatIsTheSameIsNotTouched() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["notes": KizunaSyncTableConfig()], path: "\(folder)/a.db",
        preparing: "CREATE TABLE notes(id TEXT PRIMARY KEY, r REAL, n NUMERIC, v); CREATE TABLE seen(id); "
          + "CREATE TRIGGER app AFTER UPDATE ON notes BEGIN INSERT INTO seen VALUES (NEW.id); END")
      defer { fixture.replica.close() }
      for cursor in ["1", "2", "3"] {
        try fixture.pull([("a", ["r": 1, "n": 1, "v": 1])], cursor: cursor, table: "notes")
      }
      #expect(try !fixture.database.exists("SELECT 1 FROM seen"))
      try fixture.replica.transaction(applying: true) { try fixture.sql("UPDATE notes SET v = 1.0") }
      try fixture.pull([("a", ["r": 1, "n": 1, "v": 1])], cursor: "4", table: "notes")
      #expect(try fixture.database.value("SELECT typeof(v) FROM notes") == "integer")
    }
  }
}
