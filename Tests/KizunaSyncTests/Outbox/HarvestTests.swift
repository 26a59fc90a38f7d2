import HostKit
import Testing

@testable import KizunaSync

/// T0: what plain SQL did, as entries of the outbox.
@Suite struct HarvestTests {
  private let unowned = ["todos": KizunaSyncTableConfig()]

  private func fixture() throws -> ReplicaFixture {
    let fixture = try ReplicaFixture(unowned)
    try fixture.pull([("a", ["title": "x", "n": 1])], cursor: "1")
    return fixture
  }

  @Test(arguments: [
    ("UPDATE todos SET title = 'y'", ["update a {\"title\":\"y\"}"]),
    ("UPDATE todos SET title = 'x'", []),
    ("UPDATE todos SET n = NULL", ["update a {\"n\":null}"]),
    ("DELETE FROM todos", ["delete a {}"]),
    ("INSERT INTO todos(id, title) VALUES ('b', 'z')", ["insert b {\"title\":\"z\"}"]),
    ("INSERT INTO todos(id) VALUES ('b'); DELETE FROM todos WHERE id = 'b'", []),
    (
      "INSERT INTO todos(id) VALUES ('b'); UPDATE todos SET n = 2 WHERE id = 'b'",
      ["insert b {}", "update b {\"n\":2}"]
    ),
    ("DELETE FROM todos; INSERT INTO todos(id, title, n) VALUES ('a', 'x', 1)", []),
    ("DELETE FROM todos; INSERT INTO todos(id, title) VALUES ('a', 'y')", ["update a {\"n\":null,\"title\":\"y\"}"]),
    ("INSERT OR REPLACE INTO todos(id, title) VALUES ('a', 'y')", ["update a {\"n\":null,\"title\":\"y\"}"]),
    ("UPDATE todos SET id = 'b'", ["delete a {}", "insert b {\"n\":1,\"title\":\"x\"}"]),
    ("BEGIN; UPDATE todos SET n = 5; ROLLBACK", []),
  ])
  func changesBecomeEntries(script: String, queue: [String]) throws {
    let fixture = try fixture()
    try fixture.sql(script)
    #expect(try fixture.queue() == queue)
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  @Test func entriesThatWereSentDoNotCollapse() throws {
    let fixture = try fixture()
    try fixture.sql("INSERT INTO todos(id) VALUES ('b')")
    _ = try fixture.replica.take(limit: 500)
    try fixture.sql("DELETE FROM todos WHERE id = 'b'")
    #expect(try fixture.queue() == ["insert b {}", "delete b {}"])
  }

  @Test func libraryWritesKeepTheirIDsWhateverFollows() throws {
    let fixture = try fixture()
    let id = RandomUUID.make()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "b", op: .insert, columns: ["id": "b"], mutationID: id))
    try fixture.sql("DELETE FROM todos WHERE id = 'b'")
    #expect(try fixture.queue() == ["insert b {\"id\":\"b\"}", "delete b {}"])
    #expect(try fixture.database.exists("SELECT 1 FROM _kizunasync_outbox WHERE mutation_id = ?", .text(id)))
  }

  @Test func theNewestJournalRowIsNeverDeleted() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET n = 2; UPDATE todos SET n = 3")
    _ = try fixture.queue()
    let first = try fixture.database.value("SELECT max(seq) FROM _kizunasync_capture")
    #expect(try fixture.database.value("SELECT count(*) FROM _kizunasync_capture") == 1)
    try fixture.sql("UPDATE todos SET n = 4")
    #expect(try fixture.database.value("SELECT max(seq) FROM _kizunasync_capture")! != first!)
  }

  @Test func aLongBacklogIsTakenInShortTransactions() throws {
    let fixture = try fixture()
    let count = Int(Replica.harvestBatch) * 2 + 10
    try fixture.sql(
      "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < \(count)) "
        + "INSERT INTO todos(id, n) SELECT 'k' || i, i FROM k")
    try fixture.replica.harvestBacklog()
    let left = try fixture.replica.pendingJournalRows()
    #expect(left > 0 && left <= Replica.harvestBatch)
    #expect(try fixture.queue().count == count)
  }

  /// Rows under keys that are spelled otherwise are made again at the end of each, unless more of them comes.
  @Test func aLongBacklogOfOtherSpellingsIsTakenInShortTransactions() throws {
    let fixture = try fixture()
    let count = Int(Replica.harvestBatch) * 3
    try fixture.sql(
      "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < \(count)) "
        + "INSERT INTO todos(id, n) SELECT printf('0B6C0000-0000-4000-8000-%012d', i), i FROM k")
    try fixture.replica.harvestBacklog()
    let left = try fixture.replica.pendingJournalRows()
    #expect(left > 0 && left <= Replica.harvestBatch)
    try fixture.sql("UPDATE todos SET n = 0 WHERE id LIKE '0B6C%' AND n > \(count - 5)")
    #expect(try fixture.queue().count == count + 5)
    #expect(
      try fixture.database.value("SELECT count(*) FROM todos WHERE id LIKE '0b6c%' AND id = lower(id)")
        == .integer(Int64(count)))
    // The first of them are changed by the last of these.
    try fixture.sql(
      "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < \(count)) "
        + "INSERT INTO todos(id, n) SELECT printf('1B6C0000-0000-4000-8000-%012d', i), i FROM k; "
        + "DELETE FROM todos WHERE id = '1B6C0000-0000-4000-8000-000000000001'")
    try fixture.replica.harvestBacklog()
    #expect(try fixture.replica.pendingJournalRows() == 0)
    #expect(try !fixture.database.exists("SELECT 1 FROM todos WHERE id LIKE '1b6c%0001'"))
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  @Test func groupsTieTheWritesOfATransaction() throws {
    let fixture = try fixture()
    try fixture.sql(
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET n = 2; INSERT INTO todos(id) VALUES ('b'); "
        + "DELETE FROM _kizunasync_group; COMMIT; UPDATE todos SET n = 3 WHERE id = 'a'")
    _ = try fixture.queue()
    let taken = try fixture.replica.take(limit: 500)
    #expect(taken.entries.count == 2 && Set(taken.entries.map(\.group)).count == 1)
    #expect(taken.entries[0].group?.hasPrefix("g#") == true)
  }

  /// A name is used again by the next transaction, before or after the harvest.
  @Test(arguments: [false, true]) func transactionsOfOneNameAreGroupsOfTheirOwn(isHarvestedBetween: Bool) throws {
    let fixture = try fixture()
    for value in 2...4 {
      try fixture.sql(
        "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET n = \(value) WHERE id = 'a'; "
          + "INSERT INTO todos(id) VALUES ('b\(value)'); DELETE FROM _kizunasync_group; COMMIT")
      if isHarvestedBetween { _ = try fixture.queue() }
    }
    for value in 2...4 {
      let taken = try fixture.replica.take(limit: 500)
      #expect(taken.entries.map(\.pk) == ["a", "b\(value)"])
      for entry in taken.entries { try fixture.replica.removeEntry(entry) }
    }
    #expect(try fixture.replica.take(limit: 500).entries.isEmpty)
  }

  /// The harvest of a long queue stops in the middle of it.
  @Test func aGroupIsOneHoweverItIsHarvested() throws {
    let fixture = try fixture()
    let count = Replica.harvestBatch + 700
    try fixture.sql(
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k "
        + "WHERE i < \(count)) INSERT INTO todos(id, n) SELECT 'k' || i, i FROM k; DELETE FROM _kizunasync_group; COMMIT"
    )
    try fixture.replica.harvestBacklog()
    #expect(try fixture.replica.take(limit: 500).entries.count == count)
  }

  /// Files of an earlier release have triggers that do not tell where a group begins.
  @Test func oldTriggersOfGroupsAreReplaced() throws {
    let fixture = try fixture()
    try fixture.sql(
      "DROP TRIGGER _kizunasync_group_opens; CREATE TRIGGER _kizunasync_group_opens AFTER INSERT ON _kizunasync_group "
        + "BEGIN INSERT INTO _kizunasync_displaced(base_seq) VALUES (-2); END")
    try fixture.replica.followSchemaIfChanged()
    #expect(
      try fixture.database.exists(
        "SELECT 1 FROM sqlite_schema WHERE name = '_kizunasync_group_opens' AND instr(sql, '_kizunasync_capture') > 0"))
  }

  @Test func aGroupLeftOpenIsRemovedAndReported() throws {
    let fixture = try fixture()
    try fixture.sql("INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET n = 2")
    _ = try fixture.queue()
    #expect(fixture.warnings.withLock { $0 }.contains("store.group_left_open"))
    #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_group"))
  }

  /// Files of an earlier release lack them, and without them an open group would go unseen.
  @Test func triggersOfGroupsAreMadeAgain() throws {
    let fixture = try fixture()
    try fixture.sql("DROP TRIGGER _kizunasync_group_opens; DROP TRIGGER _kizunasync_group_ends")
    try fixture.replica.followSchemaIfChanged()
    try fixture.sql(
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); INSERT INTO todos(id) VALUES ('b'); UPDATE todos SET n = 2; "
        + "DELETE FROM todos WHERE id = 'a'; DELETE FROM _kizunasync_group; COMMIT")
    _ = try fixture.queue()
    let groups = Set(try fixture.replica.take(limit: 500).entries.map(\.group))
    #expect(groups.count == 1 && groups.first??.hasPrefix("g#") == true)
  }

  @Test func nothingUnusualIsLeftAfterAGroupOrAnApply() throws {
    let fixture = try fixture()
    try fixture.sql(
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET n = 2; DELETE FROM _kizunasync_group")
    #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_displaced"))
    try fixture.sql("ROLLBACK; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET n = 3")
    _ = try fixture.queue()
    #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_displaced"))
  }

  @Test func writesOfClockedTablesAreStampedInOrder() throws {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig(conflictMode: .hlc)])
    try fixture.sql("INSERT INTO notes(id) VALUES ('a'); INSERT INTO notes(id) VALUES ('b')")
    _ = try fixture.queue()
    let stamps = try fixture.database.map("SELECT hlc FROM _kizunasync_outbox ORDER BY seq") { $0.string(0) }
    #expect(stamps.count == 2 && Set(stamps).count == 2)
    #expect(Set(stamps.map { $0.split(separator: "|")[2] }).count == 1)
    #expect(try fixture.replica.database.meta(.hlc).text?.hasSuffix(String(stamps[0].split(separator: "|")[2])) == true)
  }

  @Test func anOwnerTakenAwayOnPurposeStaysAway() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("INSERT INTO todos(id) VALUES ('a')")
    _ = try fixture.queue()
    try fixture.sql("UPDATE todos SET owner_id = NULL")
    #expect(try fixture.queue().last == "update a {\"owner_id\":null}")
    #expect(try fixture.rows()["a"]?["owner_id"] == .null)
  }
}
