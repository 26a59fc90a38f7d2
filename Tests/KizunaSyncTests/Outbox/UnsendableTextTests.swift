import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// Text that is not UTF-8, and keys at the edge of what a key can be.
@Suite struct UnsendableTextTests {
  private static let bad = "CAST(x'ff42' AS TEXT)"

  private func fixture(_ tables: [String: KizunaSyncTableConfig] = ["notes": KizunaSyncTableConfig()]) throws
    -> ReplicaFixture
  {
    let fixture = try ReplicaFixture(tables, localOnly: ["mine"])
    try fixture.pull([("7", ["a": 1, "b": "x", "mine": nil])], cursor: "1", table: "notes")
    return fixture
  }

  private func shown(_ fixture: ReplicaFixture) throws -> [String: RowMap] {
    try fixture.rows("notes").mapValues { row in row.filter { $0.key != "mine" } }
  }

  /// What the journal of refused writes holds, as `kind op key columns`.
  private func refused(_ fixture: ReplicaFixture) throws -> [String] {
    try fixture.database.map("SELECT kind, members FROM _kizunasync_rejections ORDER BY n") { row in
      let members = try JSONValue(parsing: row.string(1)).arrayValue ?? []
      let texts = members.map { member in
        ["op", "pk"].map { member[$0]?.stringValue ?? "" }.joined(separator: " ")
          + " \(JSONWriter.text(member["columns"] ?? nil))"
      }
      return ([row.string(0)] + texts).joined(separator: " ")
    }
  }

  @Test(
    arguments: [
      ("INSERT INTO notes(id, a) VALUES (\(bad), 5)", [], ["REJECTED insert \\xff42 {\"a\":5}"]),
      (
        "INSERT INTO notes(id, a) VALUES (\(bad), 5); UPDATE notes SET a = 6 WHERE a = 5", [],
        ["REJECTED insert \\xff42 {\"a\":6}"]
      ),
      ("INSERT INTO notes(id, a) VALUES (\(bad), 5); DELETE FROM notes WHERE a = 5", [], []),
      (
        "INSERT INTO notes(id, a) VALUES (\(bad), 5); UPDATE notes SET id = 'good' WHERE a = 5",
        ["insert good {\"a\":5}"], []
      ),
      ("UPDATE notes SET id = \(bad), a = 5", [], ["REJECTED insert \\xff42 {\"a\":5,\"b\":\"x\"}"]),
      ("UPDATE notes SET id = \(bad); UPDATE notes SET id = '7', a = 5", ["insert 7 {\"a\":5,\"b\":\"x\"}"], []),
      (
        "INSERT OR REPLACE INTO notes(id, a) VALUES (\(bad), 5), (\(bad), 6)", [], ["REJECTED insert \\xff42 {\"a\":6}"]
      ),
    ] as [(String, [String], [String])])
  func aRowUnderSuchAKeyIsRefused(script: String, queue: [String], journal: [String]) throws {
    let fixture = try fixture()
    try fixture.sql(script)
    #expect(try fixture.queue() == queue)
    #expect(try refused(fixture) == journal)
    #expect(try !fixture.database.exists("SELECT 1 FROM notes WHERE hex(id) = 'FF42'"), "a row nobody else can see")
    if queue.isEmpty { #expect(try shown(fixture)["7"] == ["id": "7", "a": 1, "b": "x"]) }
    #expect(fixture.replica.refusals.count == journal.count)
    #expect(fixture.warnings.withLock { $0 } == journal.map { _ in "store.text_refused" })
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  @Test(
    arguments: [
      ("UPDATE notes SET b = \(bad)", [], ["REJECTED update 7 {\"b\":\"\\\\xff42\"}"], "x"),
      ("UPDATE notes SET b = \(bad), a = 5", ["update 7 {\"a\":5}"], ["REJECTED update 7 {\"b\":\"\\\\xff42\"}"], "x"),
      ("UPDATE notes SET b = \(bad); UPDATE notes SET b = 'y'", ["update 7 {\"b\":\"y\"}"], [], "y"),
      (
        "DELETE FROM notes; INSERT INTO notes(id, a, b) VALUES ('7', 1, \(bad))", [],
        ["REJECTED update 7 {\"b\":\"\\\\xff42\"}"], "x"
      ),
      ("UPDATE notes SET b = \(bad), id = 7", [], ["REJECTED update 7 {\"b\":\"\\\\xff42\"}"], "x"),
      ("UPDATE notes SET b = \(bad); DELETE FROM notes", ["delete 7 {}"], [], nil),
    ] as [(String, [String], [String], JSONValue?)])
  func aCellIsPutBackAndItsBytesAreKept(script: String, queue: [String], journal: [String], cell: JSONValue?) throws {
    let fixture = try fixture()
    try fixture.sql(script)
    #expect(try fixture.queue() == queue)
    #expect(try refused(fixture) == journal)
    #expect(try fixture.rows("notes")["7"]?["b"] == cell)
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  /// What the journal shows of such bytes is not what was written.
  @Test(
    arguments: [
      "UPDATE notes SET b = \(bad), a = 5", "INSERT INTO notes(id, a) VALUES (\(bad), 5)",
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE notes SET b = \(bad); "
        + "INSERT INTO notes(id) VALUES ('8'); DELETE FROM _kizunasync_group; COMMIT",
    ])
  func theirHexadecimalSpellingIsNeverSent(script: String) throws {
    let fixture = try fixture()
    try fixture.sql(script)
    _ = try fixture.queue()
    let rows = try shown(fixture)
    let id = try #require(try fixture.replica.rejections(includeDismissed: false).first?.mutationId)
    let error = #expect(throws: KizunaSyncError.self) { try fixture.replica.retryRejection(id) }
    #expect(error?.code == "LOCAL_CONSTRAINT" && error?.message.contains("UTF-8") == true)
    #expect(try shown(fixture) == rows)
    #expect(try fixture.replica.rejections(includeDismissed: false).count == 1)
    #expect(try fixture.replica.dismissRejection(id))
  }

  @Test func aNewRowTravelsWithoutTheCell() throws {
    let fixture = try fixture()
    try fixture.sql("INSERT INTO notes(id, a, b) VALUES ('8', 1, \(Self.bad))")
    #expect(try fixture.queue() == ["insert 8 {\"a\":1}"])
    #expect(try shown(fixture)["8"] == ["id": "8", "a": 1])
  }

  @Test func whatNeverTravelsMayHoldAnyBytes() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE notes SET mine = \(Self.bad), a = 2; UPDATE notes SET id = 7")
    #expect(try fixture.queue() == ["update 7 {\"a\":2}"])
    #expect(try fixture.database.value("SELECT hex(mine) FROM notes") == "FF42")
    #expect(try refused(fixture) == [])
  }

  @Test func allOrNothingMeansNothing() throws {
    let fixture = try fixture()
    try fixture.sql(
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE notes SET a = 5; INSERT INTO notes(id) VALUES ('8'); "
        + "INSERT INTO notes(id, b) VALUES ('9', \(Self.bad)); DELETE FROM _kizunasync_group; COMMIT; "
        + "INSERT INTO notes(id) VALUES ('10')")
    #expect(try fixture.queue() == ["insert 10 {}"])
    #expect(try fixture.rows("notes").keys.sorted() == ["10", "7"])
    #expect(try fixture.rows("notes")["7"]?["a"] == 1)
    #expect(
      try refused(fixture) == [
        "BATCH_ABORTED update 7 {\"a\":5} insert 8 {} insert 9 {} update 9 {\"b\":\"\\\\xff42\"}"
      ])
    guard case .batchAborted(_, "CONSTRAINT") = fixture.replica.refusals.first else {
      Issue.record("\(fixture.replica.refusals)")
      return
    }
  }

  @Test func anAppsTableWithSuchTextIsNotTaken() throws {
    try withScratchFolder { folder in
      let error = #expect(throws: KizunaSyncError.self) {
        _ = try ReplicaFixture(
          ["notes": KizunaSyncTableConfig()], path: "\(folder)/a.db",
          preparing: "CREATE TABLE notes(id TEXT PRIMARY KEY, b); INSERT INTO notes VALUES ('7', \(Self.bad))")
      }
      #expect(error?.code == "CONFIG_INVALID" && error?.message.contains("column b of notes") == true)
    }
  }

  @Test(arguments: ["x'ff42'", "1.5", "7.0", "''", "NULL"])
  func keysOfOtherTypesAreRefusedAtOnce(key: String) throws {
    let fixture = try fixture()
    for statement in ["INSERT INTO notes(id) VALUES (\(key))", "UPDATE notes SET id = \(key)"] {
      let error = #expect(throws: SQLiteError.self) { try fixture.sql(statement) }
      let isReadable = error?.message.contains("must be text or an integer, and not empty") ?? false
      #expect(isReadable || error?.message.contains("NOT NULL") == true, "\(error?.message ?? "")")
    }
    #expect(try fixture.queue() == [])
  }

  /// Keys that a server may take or not; here it does.
  @Test func unusualKeysAreKeysAllTheSame() throws {
    let tables = ["notes": KizunaSyncTableConfig(), "pairs": KizunaSyncTableConfig(key: ["a", "b"])]
    var server = ReplicaServer(["notes": SyncTable(), "pairs": SyncTable(keyColumns: ["a", "b"])])
    let hosts = try [ReplicaFixture(tables), ReplicaFixture(tables)]
    try hosts[0].sql(
      "INSERT INTO notes(id) VALUES ('a' || char(0) || 'b'), ('a'), (replace(hex(zeroblob(50000)), '0', 'k')), "
        + "('[\"x\"]'), (char(233)), ('e' || char(769)), (' '), ('{}'); "
        + "INSERT INTO pairs(a, b) VALUES ('', ''), ('', 1), ('a,b', 'c'), ('a', 'b,c'), ('\"', char(10))")
    for host in hosts + hosts { #expect(try server.sync(host.replica) == []) }
    for (table, key, count) in [("notes", "id", 8), ("pairs", "a, b", 5)] {
      let keys = try hosts.map { try $0.database.map("SELECT \(key) FROM \(table) ORDER BY \(key)") { $0.row() } }
      #expect(keys[0] == keys[1] && keys[0].count == count)
    }
    try hosts[1].sql("DELETE FROM notes; DELETE FROM pairs")
    for host in [hosts[1], hosts[0]] { #expect(try server.sync(host.replica) == []) }
    #expect(try !hosts[0].database.exists("SELECT 1 FROM notes UNION ALL SELECT 1 FROM pairs"))
  }

  @Test func twoSpellingsOfOneCharacterAreTwoValues() throws {
    let fixture = try fixture()
    try fixture.pull([("8", ["b": "\u{E9}"])], cursor: "2", table: "notes")
    try fixture.sql("UPDATE notes SET b = 'e' || char(769) WHERE id = '8'")
    #expect(try fixture.queue() == ["update 8 {\"b\":\"e\u{301}\"}"])
    #expect(try fixture.database.value("SELECT hex(b) FROM notes WHERE id = '8'") == "65CC81")
  }
}
