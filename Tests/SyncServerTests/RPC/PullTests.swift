import HostKit
import SyncServer
import Testing

@Suite struct PullTests {
  typealias F = ServerFixture

  @Test func anEmptyServerClosesAtZero() {
    var server = F()
    #expect(server.pull().json == ["rows": [], "tombstones": [], "cursor": "0", "has_more": false, "signal": nil])
  }

  @Test func onlyTheNewestChangeOfARowCounts() throws {
    var server = F()
    try server.upsert("a", ["n": 1])
    try server.upsert("b", [:])
    try server.upsert("a", ["n": 2])
    let page = server.pull()
    #expect(page.rows == ["b", "a"])
    #expect(page.json["rows"]?[1]?["seq"] == "3")
  }

  @Test func anUnchangedWriteTakesNoSeq() throws {
    var server = F()
    try server.upsert("a", ["n": 1])
    try server.upsert("a", ["n": 1])
    #expect(server.pull().cursor == "1")
  }

  @Test func theCursorAdvancesPastWhatIsHidden() throws {
    var server = F()
    try server.upsert("a", [:], owner: F.other)
    let page = server.pull()
    #expect((page.rows, page.cursor, page.hasMore) == ([], "1", false))
  }

  @Test func theCursorNeverGoesBack() {
    var server = F()
    #expect(server.pull("7").cursor == "7")
    #expect(server.pull("3:7").cursor == "7")
  }

  /// With an empty page its owner would stay there for ever, if this server never comes so far.
  @Test func aServerMayLetCursorsAheadOfItExpire() throws {
    var server = F { $0.expiresCursorsAhead = true }
    for cursor in ["7", "3:7", "0:7"] {
      let page = server.pull(cursor)
      #expect((page.signal, page.cursor, page.hasMore) == ("CHECKPOINT_EXPIRED", cursor, false))
    }
    for n in 1...7 { try server.upsert("k\(n)", [:]) }
    for cursor in ["7", "3:7", "0:7"] { #expect(server.pull(cursor).signal == nil) }
  }

  @Test func theStartIsCarriedThroughAllPages() throws {
    var server = F()
    for n in 1...5 { try server.upsert("k\(n)", [:]) }
    let first = server.pull("1", limit: 2)
    #expect((first.rows, first.cursor, first.hasMore) == (["k2", "k3"], "1:3", true))
    let second = server.pull("1:3", limit: 1)
    #expect((second.rows, second.cursor, second.hasMore) == (["k4"], "1:4", true))
    let third = server.pull("1:4", limit: 1)
    #expect((third.rows, third.cursor, third.hasMore) == (["k5"], "5", false), "an exact fit closes")
  }

  @Test func withheldEntriesDoNotKeepAPageOpen() throws {
    var server = F(["todos": SyncTable(bucketColumn: "team", policy: .owner(column: "owner_id"))])
    try server.upsert("mine", ["team": "t"])
    try server.upsert("theirs", ["team": "t"], owner: F.other)
    let page = server.pull(limit: 1, buckets: [F.bucket("todos", ["team": "t"])])
    #expect((page.rows, page.cursor, page.hasMore) == (["mine"], "2", false))
  }

  @Test func theScanCapCountsWithheldEntries() throws {
    var server = F(["todos": SyncTable(bucketColumn: "team", policy: .owner(column: "owner_id"))]) {
      $0.maxPullScan = 2
    }
    for n in 1...4 { try server.upsert("k\(n)", ["team": "t"], owner: n == 4 ? F.me : F.other) }
    let buckets = [F.bucket("todos", ["team": "t"])]
    let first = server.pull(buckets: buckets)
    #expect((first.rows, first.cursor, first.hasMore) == ([], "0:2", true), "a page may be empty")
    let second = server.pull("0:2", buckets: buckets)
    #expect(
      (second.rows, second.cursor, second.hasMore) == (["k4"], "4", false), "a stream that ends at the cap closes")
  }

  @Test func otherBucketsAreNoCandidates() throws {
    var server = F { $0.maxPullScan = 2 }
    for n in 1...9 { try server.upsert("k\(n)", [:], owner: F.other) }
    try server.upsert("mine", [:])
    #expect(server.pull().rows == ["mine"])
  }

  @Test func holesAreReadAgain() throws {
    var server = F()
    for n in 1...6 { try server.upsert("k\(n)", [:]) }
    let page = server.pull("5~2.4")
    #expect(page.rows == ["k2", "k4", "k6"])
    #expect(page.cursor == "6")
    let cut = server.pull("5~2.4", limit: 1)
    #expect((cut.rows, cut.cursor) == (["k2"], "5:2"))
  }

  @Test func severalBucketsMergeInSeqOrder() throws {
    var server = F([
      "todos": SyncTable(bucketColumn: "owner_id"),
      "lists": SyncTable(bucketColumn: "team", policy: .everyone), "codes": SyncTable(),
    ])
    try server.upsert("l1", ["team": 7], table: "lists")
    try server.upsert("t1", [:])
    try server.upsert("c1", [:], table: "codes")
    try server.upsert("l2", ["team": true], table: "lists")
    try server.upsert("l3", ["team": "8"], table: "lists")
    let buckets = [
      F.bucket("lists", ["team": "7"]), F.bucket("lists", ["team": true]), F.bucket(), F.bucket("codes", [:]),
      F.bucket("lists", ["team": 7]), F.bucket("unknown", [:]),
    ]
    #expect(server.pull(buckets: buckets).rows == ["l1", "t1", "c1", "l2"])
    #expect(server.pull(limit: 2, buckets: buckets).cursor == "0:2")
  }

  @Test func furtherParamsFilterRowsAndNotTombstones() throws {
    var server = F()
    try server.upsert("done", ["done": true])
    try server.upsert("open", ["done": false])
    let open = [F.bucket("todos", ["owner_id": .string(F.me), "done": false])]
    #expect(server.pull(buckets: open).rows == ["open"])
    try server.delete("done")
    #expect(server.pull("2", buckets: open).tombstones == ["done"])
    let both = open + [F.bucket("todos", ["owner_id": .string(F.me), "done": true])]
    try server.upsert("done", ["done": true])
    #expect(server.pull(buckets: both).rows == ["open", "done"])
  }

  @Test func tombstonesNeedAGrantFromAnEarlierPull() throws {
    var server = F()
    try server.upsert("a", [:])
    try server.delete("a")
    try server.upsert("b", [:])
    #expect(server.pull().tombstones == [], "the grant of this very page does not count")
    #expect(server.pull().tombstones == ["a"])
    server.caller = .user(F.other)
    #expect(server.pull().tombstones == [])
  }

  @Test func aMoveLeavesATombstoneInTheOldBucketOnly() throws {
    var server = F(["todos": SyncTable(bucketColumn: "team", policy: .everyone)])
    try server.upsert("a", ["team": "x"])
    let (x, y) = (F.bucket("todos", ["team": "x"]), F.bucket("todos", ["team": "y"]))
    _ = server.pull(buckets: [x])
    try server.upsert("a", ["team": "y"])
    let old = server.pull("1", buckets: [x])
    #expect((old.rows, old.tombstones, old.cursor) == ([], ["a"], "3"))
    #expect(old.json["tombstones"]?[0]?["seq"] == "2")
    let both = server.pull("1", buckets: [x, y])
    #expect((both.rows, both.tombstones) == (["a"], []), "what is deliverable as a row is not buried")
  }

  @Test func anOldCheckpointExpiresAndABootstrapDoesNot() throws {
    var server = F()
    try server.upsert("a", [:])
    try server.upsert("b", [:])
    try server.delete("a")
    server.state.reap(now: nil)
    #expect(server.state.reapHorizon == 3)
    let expired = server.pull("2")
    #expect((expired.signal, expired.cursor, expired.rows) == ("CHECKPOINT_EXPIRED", "2", []))
    #expect(server.pull("2:3").signal == "CHECKPOINT_EXPIRED", "the start decides")
    for cursor in ["0", "0:1", "3", "3:3"] { #expect(server.pull(cursor).signal == nil) }
  }

  @Test func tombstonesAreReapedByAgePerTable() throws {
    var server = F([
      "todos": SyncTable(bucketColumn: "owner_id"), "notes": SyncTable(bucketColumn: "owner_id", tombstoneTTLDays: 1),
    ])
    try server.upsert("a", [:])
    try server.upsert("n", [:], table: "notes")
    try server.delete("a")
    try server.delete("n", table: "notes")
    server.state.reap(now: server.now + 86_400_000 - 1)
    #expect(server.state.reapHorizon == 0)
    server.state.reap(now: server.now + 86_400_000)
    #expect(server.state.reapHorizon == 4)
    #expect(server.state.dump().contains("todos a @3"))
  }

  @Test func theHighestMinimumOfTheAskedTablesGates() {
    let tables = [
      "todos": SyncTable(bucketColumn: "owner_id"), "notes": SyncTable(bucketColumn: "owner_id", minSchemaVersion: 3),
    ]
    var server = F(tables)
    #expect(server.pull(schema: 1).signal == nil)
    #expect(
      server.pull("9", buckets: [F.bucket(), F.bucket("notes")], schema: 2).json == [
        "rows": [], "tombstones": [], "cursor": "9", "has_more": false, "signal": ["type": "RESET_REQUIRED"],
      ])
    #expect(server.pull(buckets: [F.bucket("notes")], schema: 3).signal == nil)
    #expect(server.pull(buckets: [F.bucket("unknown")], schema: 2).signal == "RESET_REQUIRED")
    #expect(server.pull(schema: nil).signal == "RESET_REQUIRED")
  }

  @Test func argumentsAreChecked() {
    var server = F()
    #expect(server.pull(limit: 0).code == "22023")
    #expect(server.pull(buckets: Array(repeating: F.bucket(), count: 65)).code == "22023")
    #expect(server.pull(buckets: Array(repeating: F.bucket(), count: 64)).code == nil)
    #expect(server.pull("06").code == "P0001")
    #expect(server.pull(buckets: [F.bucket("todos", [:])]).code == "KZL01")
    #expect(server.pull(buckets: [F.bucket("todos", ["owner_id": nil])]).code == "22023")
    #expect(server.pull(buckets: ["todos"]).code == "22023")
    server.caller = .anonymous
    let refused = server.pull()
    #expect((refused.code, refused.status) == ("42501", 401))
  }

  @Test(
    arguments: [
      ["buckets": [], "cursor": "0"], ["buckets": [], "cursor": "0", "schema_version": 1, "extra": 1],
    ] as [JSONValue])
  func argumentNamesFindTheFunction(body: JSONValue) {
    var server = F()
    let answer = server.state.pull(body, caller: server.caller)
    #expect((answer.code, answer.status) == ("PGRST202", 404))
  }

  @Test func typedBucketColumnsCastTheirValue() throws {
    var server = F(["todos": SyncTable(bucketColumn: "team", policy: .everyone, columns: ["team": .integer])])
    try server.upsert("a", ["team": "7"])
    #expect(server.pull(buckets: [F.bucket("todos", ["team": "007"])]).rows == ["a"])
    #expect(server.pull(buckets: [F.bucket("todos", ["team": "x"])]).code == "22P02")
  }

  @Test func columnsThatCannotBeReadAreAbsent() throws {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", unreadableColumns: ["secret"])])
    try server.upsert("a", ["secret": "s", "open": "o"])
    #expect(server.pull().json["rows"]?[0]?["row"] == ["open": "o", "owner_id": .string(F.me)])
    var closed = F(["todos": SyncTable(bucketColumn: "owner_id", unreadableColumns: ["owner_id"])])
    #expect(closed.pull().code == "KZL02")
  }

  @Test func aClosedTableShowsEveryColumn() throws {
    var server = F([
      "todos": SyncTable(
        bucketColumn: "owner_id", columns: ["id": .bigint, "owner_id": .uuid, "n": .integer], isClosed: true)
    ])
    try server.upsert("7", [:])
    #expect(server.pull().json["rows"]?[0]?["row"] == ["id": 7, "n": nil, "owner_id": .string(F.me)])
  }
}
