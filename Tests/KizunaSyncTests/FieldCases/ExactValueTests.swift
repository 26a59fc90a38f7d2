import HostKit
import KizunaSyncTestSupport
import SyncServer
import Testing

@testable import KizunaSync

/// Values that other products change on the way: written by SQL on one host, pulled by another, whose program touches
/// another column, and compared on the server as text.
@Suite struct ExactValueTests {
  /// Two hosts of one user.
  private func withHosts(
    _ tables: [String: KizunaSyncTableConfig], _ served: [String: SyncTable],
    _ body: (FieldHost, FieldHost) async throws -> Void
  ) async throws {
    try await withScratchFolder { folder in
      let a = try FieldHost(folder, name: "a", tables: tables, served: served)
      try await a.sync()
      let b = try FieldHost(folder, name: "b", tables: tables, beside: a)
      try await b.sync()
      try await body(a, b)
    }
  }

  private func text(_ host: FieldHost, _ pk: String, _ column: String, in table: String = "todos") -> String? {
    host.served(pk, in: table)?[column].map { JSONWriter.text($0) }
  }

  private static let integers = ["9007199254740993", "-9223372036854775808", "9223372036854775807"]

  /// F13: 64-bit integers keep their digits, in a column, as a key and inside jsonb.
  @Test(arguments: [nil, ColumnKind.number])
  func integersKeepTheirDigits(kind: ColumnKind?) async throws {
    let tables = [
      "todos": KizunaSyncTableConfig(
        bucket: .byOwner("owner_id"), columns: ["j": .json].merging(kind.map { ["n": $0, "other": $0] } ?? [:]) { $1 }),
      "counters": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["id": .number]),
    ]
    let table = SyncTable(
      bucketColumn: "owner_id", columns: ["owner_id": .text, "n": .bigint, "other": .bigint, "j": .jsonb])
    let keyed = SyncTable(
      bucketColumn: "owner_id", columns: ["owner_id": .text, "id": .bigint, "other": .bigint],
      includesKeyColumns: true)
    try await withHosts(tables, ["todos": table, "counters": keyed]) { a, b in
      if kind == nil { try a.run("ALTER TABLE todos ADD COLUMN n; ALTER TABLE todos ADD COLUMN other") }
      try a.run("ALTER TABLE counters ADD COLUMN other")
      for (index, value) in Self.integers.enumerated() {
        try a.run(
          "INSERT INTO todos(id, n, other, j) VALUES ('k\(index)', \(value), 1, '{\"deep\":[\(value)]}');"
            + "INSERT INTO counters(id, other) VALUES (\(value), 1)")
      }
      try await a.sync()
      try await b.sync()
      try b.run("UPDATE todos SET other = 5; UPDATE counters SET other = 6")
      try await b.sync()
      try await a.sync()
      for (index, value) in Self.integers.enumerated() {
        #expect(text(a, "k\(index)", "n") == value)
        #expect(text(a, "k\(index)", "j") == "{\"deep\":[\(value)]}")
        #expect(text(a, "k\(index)", "other") == "5")
        #expect(text(a, value, "id", in: "counters") == value)
        #expect(text(a, value, "other", in: "counters") == "6")
        for host in [a, b] {
          #expect(try host.texts("SELECT typeof(n) || n FROM todos WHERE id = 'k\(index)'") == ["integer\(value)"])
          #expect(try host.texts("SELECT other FROM counters WHERE id = \(value)") == ["6"])
        }
      }
    }
  }

  /// F15: exact decimals stay what they are.
  @Test(arguments: ["0.10", "12345678901234567890.123456789", "-0.000", "1e3"])
  func decimalsKeepTheirDigits(literal: String) async throws {
    let tables = [
      "todos": KizunaSyncTableConfig(
        bucket: .byOwner("owner_id"), columns: ["price": .numeric, "title": .text])
    ]
    try await withHosts(tables, FieldHost.todos(["price": .numeric, "title": .text])) { a, b in
      try a.serve("there", ["price": JSONValue(parsing: literal)])
      let served = try #require(text(a, "there", "price"))
      try a.run("INSERT INTO todos(id, price) VALUES ('here', '\(served)')")
      try await a.sync()
      try await b.sync()
      try b.run("UPDATE todos SET title = 'touched'")
      try await b.sync()
      try await a.sync()
      for key in ["there", "here"] {
        #expect(text(a, key, "price") == served)
        #expect(a.served(key)?["title"] == "touched")
        #expect(try b.texts("SELECT typeof(price) || price FROM todos WHERE id = '\(key)'") == ["text\(served)"])
      }
    }
  }

  /// F15: a value that a column cannot hold exactly is reported, and not rounded.
  @Test func aValueThatDoesNotFitIsReported() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder, tables: FieldHost.todos, served: FieldHost.todos(["price": .numeric]),
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, price REAL, owner_id TEXT)")
      try host.serve("a", ["price": JSONValue(parsing: "12345678901234567890.123456789")])
      try host.serve("b", ["price": JSONValue(parsing: "0.5")])
      // Only the notation changes.
      try host.serve("c", ["price": JSONValue(parsing: "1.50")])
      try host.serve("d", ["price": JSONValue(parsing: "3")])
      try host.serve("e", ["price": JSONValue(parsing: "9007199254740993")])
      try await host.sync()
      #expect(try host.texts("SELECT id || ' ' || price FROM todos ORDER BY id") == ["b 0.5", "c 1.5", "d 3.0"])
      #expect(host.events("store.row_parked").count == 2)
      #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).parkedRows == 2)
      // A value that fits replaces it.
      try host.serve("a", ["price": 7])
      try await host.sync()
      #expect(try host.texts("SELECT price FROM todos WHERE id = 'a'") == ["7.0"])
    }
  }

  private static let json = [
    "\"123\"", "123", "true", "null", "[]", "[null,\"a,b\"]", "{\"k\":0}", "false", "\"\"", "1.50", "[[1],{}]",
  ]

  /// F17: JSON stays the JSON it was, booleans go out as booleans, and arrays as arrays.
  @Test(arguments: json)
  func jsonKeepsItsType(value: String) async throws {
    let tables = [
      "todos": KizunaSyncTableConfig(
        bucket: .byOwner("owner_id"), columns: ["j": .json, "tags": .json, "yes": .boolean, "title": .text])
    ]
    let served = FieldHost.todos(["j": .jsonb, "tags": .textArray, "yes": .boolean, "title": .text])
    try await withHosts(tables, served) { a, b in
      try a.run(
        """
        INSERT INTO todos(id, j, tags, yes) VALUES ('here', '\(value)', '["a,b","","\\"q\\""]', 1);
        """)
      try a.serve("there", ["j": JSONValue(parsing: value), "tags": ["x", "a,b"], "yes": false])
      try await a.sync()
      try await b.sync()
      try b.run("UPDATE todos SET title = 'touched'")
      try await b.sync()
      try await a.sync()
      // SQL's NULL and JSON's null are one in a column of the database.
      #expect(text(a, "here", "j") == value && text(a, "there", "j") == value)
      #expect(text(a, "here", "tags") == #"["a,b","","\"q\""]"# && text(a, "there", "tags") == #"["x","a,b"]"#)
      #expect(text(a, "here", "yes") == "true" && text(a, "there", "yes") == "false")
      if value != "null" { #expect(try b.texts("SELECT j FROM todos WHERE id = 'there'") == [value]) }
      let sent = a.transport.mutations.compactMap { $0["columns"]?["yes"] }
      #expect(sent == [true])
    }
  }

  /// F19: NULL, the empty text, zero, false, an empty array and an absent cell are six things, in both directions; a write
  /// names only the columns it changes.
  @Test func sixEmptyThingsStaySix() async throws {
    let tables = [
      "todos": KizunaSyncTableConfig(
        bucket: .byOwner("owner_id"),
        columns: ["n": .number, "s": .text, "z": .number, "f": .boolean, "l": .json, "title": .text])
    ]
    let table = SyncTable(
      bucketColumn: "owner_id",
      columns: [
        "owner_id": .text, "n": .integer, "s": .text, "z": .integer, "f": .boolean, "l": .jsonb, "title": .text,
      ])
    let wanted: RowMap = ["owner_id": .string(owner), "n": .null, "s": "", "z": 0, "f": false, "l": []]
    try await withHosts(tables, ["todos": table]) { a, b in
      try a.serve("there", ["n": .null, "s": "", "z": 0, "f": false, "l": []])
      try await b.sync()
      let read = try await b.engine { try await $0.read { try $0.rows("todos").map(\.columns) } }
      #expect(read.map { $0.filter { $0.key != "id" } } == [wanted])
      try b.run("UPDATE todos SET title = 'touched' WHERE id = 'there'")
      try await b.sync()
      #expect(a.transport.mutations.map { $0["columns"] } == [["title": "touched"]])
      #expect(a.served("there") == wanted.merging(["title": "touched"]) { $1 })

      // And from here: an insert says what it holds; what an update sets to NULL is sent as null.
      try a.run("INSERT INTO todos(id, s, z, f, l) VALUES ('here', '', 0, 0, '[]')")
      try await a.sync()
      #expect(
        a.transport.mutations.last?["columns"] == ["s": "", "z": 0, "f": false, "l": [], "owner_id": .string(owner)])
      try a.run("UPDATE todos SET s = NULL WHERE id = 'here'")
      try await a.sync()
      #expect(a.transport.mutations.last?["columns"] == ["s": .null])
      #expect(a.served("here")?["s"] == .some(.null) && a.served("here")?["z"] == 0)
    }
  }

  /// F41: keys of several columns with any text in them are told apart everywhere.
  @Test func compositeKeysStayApart() async throws {
    let tables = [
      "todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), key: ["x", "y"], columns: ["n": .number])
    ]
    let table = SyncTable(
      bucketColumn: "owner_id", keyColumns: ["x", "y"],
      columns: ["owner_id": .text, "x": .text, "y": .text, "n": .integer],
      includesKeyColumns: true)
    let keys = [("a,b", "c"), ("a", "b,c"), ("", "c"), ("\"q\"", "[1]"), ("ä", "日本"), ("it's", "")]
    // As PostgreSQL writes a JSON array.
    func pk(_ key: (String, String)) -> String {
      "[" + [key.0, key.1].map { JSONWriter.text(.string($0)) }.joined(separator: ", ") + "]"
    }
    func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "''") + "'" }
    func whereKey(_ key: (String, String)) -> String { "x = \(quoted(key.0)) AND y = \(quoted(key.1))" }
    try await withHosts(tables, ["todos": table]) { a, b in
      for (index, key) in keys.enumerated() {
        try a.run("INSERT INTO todos(x, y, n) VALUES (\(quoted(key.0)), \(quoted(key.1)), \(index))")
      }
      try await a.sync()
      try await b.sync()
      for (index, key) in keys.enumerated() {
        #expect(a.served(pk(key))?["n"] == .int(index))
        #expect(try b.texts("SELECT n FROM todos WHERE \(whereKey(key))") == ["\(index)"])
        try b.run("UPDATE todos SET n = n + 10 WHERE \(whereKey(key))")
      }
      try await b.sync()
      for (index, key) in keys.enumerated() { #expect(a.served(pk(key))?["n"] == .int(index + 10)) }

      // A refused write of one leaves the other alone, and the journal names it.
      try b.run("UPDATE todos SET n = 'no number' WHERE \(whereKey(keys[0]))")
      try await b.sync()
      let parked = try await b.engine { try await $0.rejections(includeDismissed: false).map(\.pk) }
      #expect(parked == [pk(keys[0])])
      #expect(try b.texts("SELECT n FROM todos WHERE \(whereKey(keys[0]))") == ["10"])
      #expect(try b.texts("SELECT n FROM todos WHERE \(whereKey(keys[1]))") == ["11"])

      try b.run("DELETE FROM todos WHERE \(whereKey(keys[1]))")
      try await b.sync()
      try await a.sync()
      #expect(a.served(pk(keys[1])) == nil && a.served(pk(keys[0]))?["n"] == 10)
      #expect(try a.texts("SELECT count(*) FROM todos") == ["\(keys.count - 1)"])
      #expect(try a.texts("SELECT n FROM todos WHERE \(whereKey(keys[0]))") == ["10"])
    }
  }
}
