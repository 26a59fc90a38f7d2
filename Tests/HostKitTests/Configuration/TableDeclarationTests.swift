import HostKit
import Testing

@Suite struct TableDeclarationTests {
  private func decode(_ tables: String) throws(ConfigurationError) -> [String: TableDeclaration] {
    try ConfigurationDocument.decode(file: "f", text: "{\"tables\": \(tables)}") { TableDeclaration.decodeTables($0) }
      .value
  }

  @Test func readsEveryOption() throws {
    let tables = try decode(
      """
      {"todos": {"bucket": {"owner": "owner_id"}, "softDeleteColumn": "deleted_at", "conflictMode": "hlc",
                 "columns": {"done": "boolean", "price": "numeric"}},
       "seats": {"bucket": {"column": "team", "value": 7}, "key": ["hall", "seat"], "syncMode": "pull-only"},
       "notices": {}}
      """)
    #expect(
      tables == [
        "todos": TableDeclaration(
          bucket: .owner(column: "owner_id"), softDeleteColumn: "deleted_at", conflictMode: .hlc,
          columns: ["done": .boolean, "price": .numeric]),
        "seats": TableDeclaration(bucket: .column("team", value: 7), key: ["hall", "seat"], syncMode: .pullOnly),
        "notices": TableDeclaration(),
      ])
  }

  @Test(arguments: [
    ("{}", "1:12: tables: name at least one table"),
    ("[]", "1:12: tables: an object { … } is expected here, not an array"),
    (
      #"{"Todos": {}}"#,
      "1:22: tables.Todos: a table name must start with a lower-case letter and hold only a to z, 0 to 9 and _"
    ),
    (
      #"{"sqlite_x": {}}"#,
      "1:25: tables.sqlite_x: names that begin with sqlite_ or pragma_ are reserved by SQLite; call the table otherwise"
    ),
    (#"{"t": null}"#, "1:18: tables.t: an object { … } is expected here, not null"),
    (#"{"t": {"key": []}}"#, "1:26: tables.t.key: this names no column; name the key's, or leave it out for [\"id\"]"),
    (#"{"t": {"key": ["a", "a"]}}"#, "1:26: tables.t.key: names a column twice"),
    (
      #"{"t": {"key": ["a", "B"]}}"#,
      "1:32: tables.t.key.1: a column name must start with a lower-case letter and hold only a to z, 0 to 9 and _"
    ),
    (#"{"t": {"softDeleteColumn": "id"}}"#, "1:39: tables.t.softDeleteColumn: must not be a key column"),
    (
      #"{"t": {"bucket": {}}}"#,
      #"1:29: tables.t.bucket: this must be either {"owner": column} or {"column": column, "value": …}; write one of them, or leave the bucket out for the whole table"#
    ),
    (
      #"{"t": {"bucket": {"owner": "id"}}}"#,
      "1:39: tables.t.bucket.owner: \"id\" names the row, not its owner; name the column with the user's id"
    ),
    (#"{"t": {"bucket": {"owner": ""}}}"#, "1:39: tables.t.bucket.owner: must not be empty"),
    (
      #"{"t": {"bucket": {"column": "c"}}}"#,
      "1:29: tables.t.bucket: \"value\" is missing; add the one that the rows to sync have"
    ),
    (
      #"{"t": {"bucket": {"column": "c", "value": 1.5}}}"#,
      "1:54: tables.t.bucket.value: a string, a whole number, true or false is expected here, not a number"
    ),
    (
      #"{"t": {"bucket": {"column": "c", "value": null}}}"#,
      "1:54: tables.t.bucket.value: a string, a whole number, true or false is expected here, not null"
    ),
    (#"{"t": {"bucket": {"owner": null}}}"#, "1:39: tables.t.bucket.owner: a string is expected here, not null"),
    (
      #"{"t": {"bucket": {"column": null, "value": 1}}}"#,
      "1:40: tables.t.bucket.column: a string is expected here, not null"
    ),
    (
      #"{"t": {"bucket": {"owner": "o", "value": 1}}}"#,
      "1:53: tables.t.bucket.value: belongs to \"column\", and the value of an owner is the signed-in user; remove it"
    ),
    (
      #"{"t": {"columns": {"a": "bool"}}}"#,
      #"1:36: tables.t.columns.a: must be one of "text", "number", "numeric", "boolean", "json""#
    ),
    (#"{"t": {"buckets": {}}}"#, "1:19: tables.t.buckets: unknown key; did you mean \"bucket\"?"),
  ])
  func refuses(tables: String, problem: String) {
    do throws(ConfigurationError) {
      _ = try decode(tables)
      Issue.record("accepted")
    } catch { #expect(error.problems.map(\.description) == [problem]) }
  }

  @Test func limitsTheNumberOfColumns() throws {
    func table(_ count: Int) -> String {
      "{\"t\": {\"bucket\": {\"owner\": \"o\"}, \"columns\": {"
        + (0..<count).map { "\"c\($0)\": \"text\"" }.joined(separator: ",") + "}}}"
    }
    // The key and the owner are columns too.
    #expect(try decode(table(995))["t"]?.namedColumns.count == TableDeclaration.maximumColumns)
    do throws(ConfigurationError) {
      _ = try decode(table(996))
      Issue.record("accepted")
    } catch {
      #expect(error.problems.count == 1)
      #expect(error.problems.first?.message.contains("998 columns are too many") == true)
    }
  }

  @Test func limitsTheNumberOfTables() {
    let many = "{" + (0...64).map { "\"t\($0)\": {}" }.joined(separator: ",") + "}"
    #expect(throws: ConfigurationError.self) { try decode(many) }
  }
}
