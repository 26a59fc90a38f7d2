import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// Keys that SQL spells otherwise than the server does: the row stays, under the spelling that travels.
@Suite struct RespelledKeyTests {
  private static let uuid = "0b6cabcd-0000-4000-8000-00000000abcd"

  private func fixture() throws -> ReplicaFixture {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig()])
    try fixture.pull([("7", ["a": 1, "b": 2])], cursor: "1", table: "notes")
    return fixture
  }

  @Test(
    arguments: [
      ("UPDATE notes SET id = 7 WHERE id = '7'", [], ["a": 1, "b": 2]),
      ("UPDATE notes SET id = 7, a = 5 WHERE id = '7'", ["update 7 {\"a\":5}"], ["a": 5, "b": 2]),
      ("UPDATE notes SET id = 7; UPDATE notes SET id = '7'", [], ["a": 1, "b": 2]),
      ("UPDATE notes SET id = 7; UPDATE notes SET a = 5", ["update 7 {\"a\":5}"], ["a": 5, "b": 2]),
      ("UPDATE notes SET a = 5; UPDATE notes SET id = 7", ["update 7 {\"a\":5}"], ["a": 5, "b": 2]),
      ("UPDATE notes SET id = 7; DELETE FROM notes", ["delete 7 {}"], nil),
      ("DELETE FROM notes; INSERT INTO notes(id, a, b) VALUES (7, 1, 2)", [], ["a": 1, "b": 2]),
      ("DELETE FROM notes; INSERT INTO notes(id, a, b) VALUES (7, 1, 3)", ["update 7 {\"b\":3}"], ["a": 1, "b": 3]),
      ("INSERT INTO notes(id, a) VALUES (7, 5)", ["update 7 {\"a\":5}"], ["a": 5, "b": 2]),
      ("INSERT OR REPLACE INTO notes(id, a) VALUES (7, 5)", ["update 7 {\"a\":5}"], ["a": 5, "b": 2]),
      ("INSERT INTO notes(id, a) VALUES (7, 1)", [], ["a": 1, "b": 2]),
      (
        "INSERT INTO notes(id, a) VALUES (7, 5); DELETE FROM notes WHERE id = 7",
        ["update 7 {\"a\":5}", "update 7 {\"a\":1}"], ["a": 1, "b": 2]
      ),
      (
        "INSERT INTO notes(id, a) VALUES (7, 5); DELETE FROM notes WHERE id = '7'",
        ["update 7 {\"a\":5}", "update 7 {\"b\":null}"], ["a": 5, "b": nil]
      ),
      (
        "INSERT INTO notes(id, a) VALUES (7, 5); UPDATE notes SET b = 9 WHERE id = '7'",
        ["update 7 {\"a\":5}", "update 7 {\"b\":9}"], ["a": 5, "b": 9]
      ),
      (
        "UPDATE notes SET b = 9; INSERT INTO notes(id, a) VALUES (7, 5)", ["update 7 {\"b\":9}", "update 7 {\"a\":5}"],
        ["a": 5, "b": 9]
      ),
      (
        "INSERT INTO notes(id, a) VALUES (7, 5); DELETE FROM notes WHERE id = '7'; DELETE FROM notes",
        ["update 7 {\"a\":5}", "update 7 {\"b\":null}", "delete 7 {}"], nil
      ),
      (
        "UPDATE notes SET id = '8'; INSERT INTO notes(id, a) VALUES (7, 5)",
        ["insert 8 {\"a\":1,\"b\":2}", "update 7 {\"a\":5,\"b\":null}"], ["a": 5, "b": nil]
      ),
    ] as [(String, [String], RowMap?)])
  func aKeyThatIsSpelledOtherwiseIsTheSameRow(script: String, queue: [String], row: RowMap?) throws {
    let fixture = try fixture()
    try fixture.sql(script)
    #expect(try fixture.queue() == queue)
    var wanted = row
    wanted?["id"] = "7"
    #expect(try fixture.rows("notes")["7"] == wanted)
    #expect(try fixture.replica.row("notes", pk: "7") == wanted, "not under its canonical key")
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  @Test func anInsertNotSentYetIsSpelledAnew() throws {
    let fixture = try fixture()
    try fixture.sql("INSERT INTO notes(id, a) VALUES ('\(Self.uuid)', 1)")
    _ = try fixture.queue()
    try fixture.sql("UPDATE notes SET id = upper(id) WHERE id = '\(Self.uuid)'")
    #expect(try fixture.queue() == ["insert \(Self.uuid) {\"a\":1}"])
    #expect(try fixture.replica.row("notes", pk: Self.uuid)?["a"] == 1)
  }

  @Test func aRespelledRowInAGroupIsOneUpdate() throws {
    let fixture = try fixture()
    try fixture.sql(
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE notes SET id = 7, a = 5; "
        + "DELETE FROM _kizunasync_group; COMMIT")
    #expect(try fixture.queue() == ["update 7 {\"a\":5}"])
    #expect(try fixture.rows("notes")["7"]?["a"] == 5)
  }

  @Test func aRespelledInsertBesideARowThatTheJournalDeletesLaterIsNotLost() throws {
    let fixture = try fixture()
    // What was there before the journal began stands in a later journal row only.
    try fixture.sql(
      "INSERT INTO notes(id, a) VALUES (7, 5); UPDATE notes SET id = '9', b = 3 WHERE id = '7'; DELETE FROM notes WHERE id = 7"
    )
    _ = try fixture.queue()
    #expect(try fixture.rows("notes") == ["9": ["id": "9", "a": 1, "b": 3]])
    #expect(try fixture.replica.image("notes", pk: "7")?.row == ["id": "7", "a": 1, "b": 2])
  }

  @Test func compositeKeysAreSpelledPartByPart() throws {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig(key: ["u", "n"])])
    let pk = "[\"\(Self.uuid)\", \"7\"]"
    try fixture.pull([(pk, ["a": 1])], cursor: "1", table: "notes")
    try fixture.sql("UPDATE notes SET u = upper(u), n = 7, a = 2")
    #expect(try fixture.queue() == ["update \(pk) {\"a\":2}"])
    #expect(try fixture.replica.row("notes", pk: pk)?["a"] == 2)
  }

  @Test(arguments: [
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, a, mine)", "CREATE TABLE notes(id TEXT PRIMARY KEY, a, mine)",
    "CREATE TABLE notes(id PRIMARY KEY, a, mine) WITHOUT ROWID",
    "CREATE TABLE notes(id INT PRIMARY KEY, a, mine)",
  ])
  func rowsOfAnAppsTableKeepWhatNeverTravels(create: String) throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["notes": KizunaSyncTableConfig()], path: "\(folder)/a.db", localOnly: ["mine"], preparing: create)
      // An integer primary key holds no uuid.
      let pks = create.contains("INTEGER") ? ["7"] : ["7", Self.uuid]
      try fixture.pull(pks.map { ($0, ["a": 1]) }, cursor: "1", table: "notes")
      try fixture.sql("UPDATE notes SET mine = 'kept'")
      _ = try fixture.queue()
      try fixture.sql("UPDATE notes SET id = 7, a = 2 WHERE id = '7'")
      try fixture.sql("UPDATE notes SET id = upper(id), a = 2 WHERE length(id) = 36")
      for pk in try fixture.rows("notes").keys { #expect(try fixture.queue().contains("update \(pk) {\"a\":2}")) }
      #expect(try fixture.rows("notes").values.allSatisfy { $0["mine"] == "kept" && $0["a"] == 2 })
      #expect(try fixture.replica.row("notes", pk: "7")?["a"] == 2)
      #expect(try fixture.replica.brokenInvariants() == [])
    }
  }

  @Test func integersHaveOneSpelling() throws {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig(columns: ["id": .number])])
    try fixture.pull([("7", ["id": 7, "a": 1])], cursor: "1", table: "notes")
    try fixture.sql("INSERT INTO notes(id, a) VALUES ('007', 2)")
    #expect(try fixture.queue() == ["update 7 {\"a\":2}"])
    #expect(try fixture.apply(LocalWrite(table: "notes", pk: "+7", op: .update, columns: ["a": 3])) == "7")
    #expect(try fixture.rows("notes").keys.sorted() == ["7"])
  }

  @Test func keysFollowTheKindThatTheConfigurationDeclaresLater() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/a.db"
      var fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig()], path: path)
      try fixture.pull([("7", ["a": 1]), ("seven", ["a": 1])], cursor: "1", table: "notes")
      for kind in [ColumnKind.number, .text] {
        fixture.replica.close()
        fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig(columns: ["id": kind])], path: path)
        #expect(try fixture.rows("notes").keys.sorted() == ["7", "seven"])
        #expect(try fixture.replica.row("notes", pk: "7") != nil && fixture.replica.row("notes", pk: "seven") != nil)
      }
    }
  }
}
