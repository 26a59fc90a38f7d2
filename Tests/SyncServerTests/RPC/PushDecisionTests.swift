import HostKit
import SyncServer
import Testing

/// How one mutation is decided (Kizuna wire contract §5.4).
@Suite struct PushDecisionTests {
  typealias F = ServerFixture

  @Test func aReplayTellsTheRecordedVerdictWithTheRowAsItIsNow() throws {
    var server = F()
    try server.upsert("a", ["n": 1, "title": "x"])
    let refused = F.update(1, "a", ["title": "y"], ["precondition": ["n": 2]])
    let counted = F.update(2, "a", [:], ["transforms": ["n": ["op": "increment", "by": 5]]])
    let plain = F.update(3, "a", ["title": "z"])
    let first = server.push([refused, counted, plain]).json["verdicts"]
    #expect(first?[0]?["server_row"]?["n"] == 1)
    try server.upsert("a", ["n": 100])
    let again = server.push([refused, counted, plain]).json["verdicts"]
    #expect(again?[0]?["reason"] == "PRECONDITION")
    #expect(again?[0]?["server_row"]?["n"] == 100)
    #expect(again?[1]?["verdict"] == "applied")
    #expect(again?[1]?["server_row"]?["n"] == 100)
    #expect(again?[2] == ["mutation_id": F.id(3), "verdict": "applied"])
    try server.upsert("a", [:], owner: F.other)
    let hidden = server.push([refused, counted]).json["verdicts"]
    #expect(hidden?[0]?["server_row"] == .null)
    #expect(hidden?[1]?["server_row"] == nil)
  }

  @Test func aVerdictBelongsToItsUser() throws {
    var server = F()
    #expect(server.verdict(F.insert(1, "a")) == "applied")
    server.caller = .user(F.other)
    #expect(server.verdict(F.insert(1, "b", owner: F.other)) == "RLS_DENIED")
    #expect(server.state.row("todos", "b") == nil)
    server.caller = .user(F.me)
    #expect(server.verdict(F.insert(1, "a")) == "applied", "the stranger's attempt was not recorded")
  }

  @Test func mutationIdsAreOneInAnyCase() {
    var server = F()
    _ = server.push([F.insert(0xAB, "a")])
    let upper = F.id(0xAB).stringValue?.uppercased() ?? ""
    #expect(
      server.verdict(F.mutation(0xAB, "insert", "b", ["owner_id": .string(F.me)], ["mutation_id": .string(upper)]))
        == "applied")
    #expect(server.state.rowCount("todos") == 1)
  }

  @Test func deletesWinForThoseWhoMayKnow() throws {
    var server = F()
    try server.upsert("a", [:])
    try server.delete("a")
    #expect(server.verdict(F.update(1, "a", ["n": 1])) == "RLS_DENIED", "nobody was ever shown the bucket")
    try server.upsert("b", [:])
    _ = server.pull()
    #expect(server.verdict(F.update(2, "a", ["n": 1])) == "DELETE_WINS")
    #expect(server.verdict(F.insert(3, "a")) == "DELETE_WINS")
    #expect(server.verdict(F.delete(4, "a")) == "DELETE_WINS")
    server.state.reap(now: nil)
    #expect(server.verdict(F.insert(5, "a")) == "applied", "after the reap the key is free")
  }

  @Test func aRowDeletedInThisPushStaysDeleted() {
    var server = F()
    let answer = server.push([F.insert(1, "a"), F.delete(2, "a"), F.insert(3, "a"), F.update(4, "a", ["n": 1])])
    let reasons = answer.json["verdicts"]?.arrayValue?.map { $0["reason"] ?? "applied" }
    #expect(reasons == ["applied", "applied", "DELETE_WINS", "DELETE_WINS"])
  }

  @Test func columnsMayBeDenied() throws {
    var server = F([
      "todos": SyncTable(
        bucketColumn: "owner_id", columns: ["n": .integer, "id": .text, "owner_id": .text, "fixed": .text],
        isClosed: true, unwritableColumns: ["fixed"])
    ])
    try server.upsert("a", ["n": 1])
    let denied = server.push([F.update(1, "a", ["fixed": "x"])]).json["verdicts"]?[0]
    #expect(denied?["reason"] == "COLUMN_DENIED")
    #expect(denied?["server_row"]?["n"] == 1, "the row as the caller sees it")
    #expect(server.verdict(F.update(2, "a", ["id": "a"])) == "COLUMN_DENIED", "a key column, even unchanged")
    #expect(
      server.verdict(F.update(3, "a", [:], ["transforms": ["id": ["op": "increment", "by": 1]]])) == "COLUMN_DENIED")
    #expect(server.verdict(F.update(4, "a", ["unknown": 1])) == "COLUMN_DENIED")
    #expect(server.verdict(F.insert(5, "b", ["id": "other"])) == "CONSTRAINT")
    #expect(server.verdict(F.insert(6, "b", ["id": "b"])) == "applied")
  }

  @Test func integerKeysMayBeSpelledEitherWay() {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", columns: ["id": .bigint])])
    #expect(server.verdict(F.insert(1, "7", ["id": 7])) == "applied")
    #expect(server.verdict(F.insert(2, "8", ["id": "8"])) == "applied")
    #expect(server.verdict(F.insert(3, "9", ["id": 10])) == "CONSTRAINT")
  }

  @Test func hiddenAndAbsentLookTheSame() throws {
    var server = F()
    try server.upsert("theirs", [:], owner: F.other)
    let answers = ["theirs", "nobodys"].enumerated().map { index, pk in
      server.push([F.update(index * 3 + 1, pk, ["n": 1]), F.delete(index * 3 + 2, pk)]).json["verdicts"]?.arrayValue?
        .map {
          [$0["reason"], $0["server_row"]]
        }
    }
    #expect(answers[0] == [["RLS_DENIED", .null], ["RLS_DENIED", .null]])
    #expect(answers[0] == answers[1])
    #expect(server.verdict(F.insert(10, "theirs")) == "RLS_DENIED")
    #expect(server.verdict(F.insert(11, "new", owner: F.other)) == "RLS_DENIED")
    #expect(server.verdict(F.insert(12, "new", owner: nil)) == "RLS_DENIED")
  }

  @Test func aRowCannotBeGivenAway() throws {
    var server = F()
    try server.upsert("a", ["n": 1])
    let refused = [F.update(1, "a", ["owner_id": .string(F.other)]), F.insert(2, "a", ["n": 2], owner: F.other)]
    for _ in 0..<2 {
      let verdicts = server.push(refused).json["verdicts"]?.arrayValue
      for verdict in verdicts ?? [] {
        #expect(verdict["reason"] == "RLS_DENIED")
        #expect(verdict["server_row"] == ["n": 1, "owner_id": .string(F.me)], "the caller still sees the row")
      }
    }
    let abort = server.push([F.update(3, "a", ["owner_id": .string(F.other)])], atomic: true).json["batch"]
    #expect(abort?["server_row"]?["n"] == 1)
    #expect(server.state.row("todos", "a") == ["n": 1, "owner_id": .string(F.me)])
  }

  @Test func aSecondInsertMerges() {
    var server = F()
    _ = server.push([F.insert(1, "a", ["n": 1, "title": "x"])])
    #expect(server.verdict(F.insert(2, "a", ["n": 2])) == "applied")
    #expect(server.state.row("todos", "a") == ["n": 2, "title": "x", "owner_id": .string(F.me)])
  }

  @Test func anUpdateOfNothingIsRefused() throws {
    var server = F()
    try server.upsert("a", ["n": 1])
    let verdict = server.push([F.update(1, "a", [:])]).json["verdicts"]?[0]
    #expect(verdict?["reason"] == "RLS_DENIED")
  }

  @Test(
    arguments: [
      (["n": 1], "applied"), (["n": "1"], "applied"), (["n": 2], "PRECONDITION"), (["gone": nil], "applied"),
      (["absent": nil], "PRECONDITION"), (["n": 1, "title": "no"], "PRECONDITION"), (["secret": "s"], "PRECONDITION"),
    ] as [([String: JSONValue], String)])
  func preconditions(expected: [String: JSONValue], verdict: String) throws {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", unreadableColumns: ["secret"])])
    try server.upsert("a", ["n": 1, "title": "x", "gone": nil, "secret": "s"])
    #expect(server.verdict(F.update(1, "a", ["n": 5], ["precondition": .object(expected)])) == verdict)
  }

  @Test func valuesTheColumnRefusesAreAConstraint() throws {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", columns: ["n": .smallint])])
    let answer = server.push([F.insert(1, "a", ["n": "x"]), F.insert(2, "b", ["n": "7"])]).json["verdicts"]
    #expect(answer?[0] == ["mutation_id": F.id(1), "verdict": "rejected", "reason": "CONSTRAINT", "server_row": nil])
    #expect(server.state.row("todos", "b")?["n"] == 7, "one bad mutation never blocks the next")
  }

  @Test func anAtomicBatchRecordsNothingWhenItFails() throws {
    var server = F()
    try server.upsert("a", ["n": 1])
    let before = server.state.dump()
    let batch = [F.insert(1, "b"), F.update(2, "a", ["n": 2]), F.update(3, "ghost", ["n": 1])]
    #expect(
      server.push(batch, atomic: true).json == [
        "batch": ["outcome": "aborted", "offender_mutation_id": F.id(3), "reason": "RLS_DENIED", "server_row": nil]
      ])
    #expect(server.state.dump() == before, "seqs and verdicts are given back")
    #expect(server.push(Array(batch.prefix(2)), atomic: true).json["verdicts"]?.arrayValue?.count == 2)
    #expect(server.state.horizon == 3)
  }

  @Test func recordedVerdictsOfMembersCount() throws {
    var server = F()
    #expect(server.verdict(F.update(1, "ghost", ["n": 1])) == "RLS_DENIED")
    #expect(server.verdict(F.insert(2, "a")) == "applied")
    let answer = server.push([F.insert(2, "a"), F.insert(3, "b"), F.update(1, "ghost", ["n": 1])], atomic: true)
    #expect(answer.json["batch"]?["offender_mutation_id"] == F.id(1))
    #expect(server.state.row("todos", "b") == nil)
  }

  @Test func oldVerdictsAreForgotten() async throws {
    let now = Locked<Int64>(0)
    let server = SyncServer(
      configuration: .init(tables: ["todos": SyncTable(bucketColumn: "owner_id")]),
      wallMilliseconds: { now.withLock { $0 } })
    let body: JSONValue = [
      "batch": ["atomic": false, "mutations": [F.update(1, "a", ["n": 1])]], "last_mutation_id": nil,
      "schema_version": 1,
    ]
    _ = await server.push(body, caller: .user(F.me))
    now.withLock { $0 = 90 * 86_400_000 }
    try await server.maintain()
    #expect(await server.dump().contains("verdict"))
    now.withLock { $0 += 1 }
    try await server.maintain()
    #expect(await server.dump() == "seq 0, reaped to 0\n")
  }
}
