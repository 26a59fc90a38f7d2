import HostKit
import SyncServer
import Testing

/// What refuses a whole push, in the order of the checks (Kizuna wire contract §5.3).
@Suite struct PushGuardTests {
  typealias F = ServerFixture

  @Test(
    arguments: [
      ("not an object", 5), ("mutation_id", F.mutation(1, "insert", "a", [:], ["mutation_id": "x"])),
      ("op", F.mutation(1, "upsert", "a", [:])), ("table", F.mutation(1, "insert", "a", [:], ["table": 1])),
      ("pk", F.mutation(1, "insert", "", [:])), ("pk", F.mutation(1, "insert", "a", [:], ["pk": 1])),
      ("columns", F.mutation(1, "insert", "a", [:], ["columns": []])),
      ("precondition", F.update(1, "a", [:], ["precondition": 1])),
      ("transforms", F.update(1, "a", [:], ["transforms": 1])),
      ("transforms", F.mutation(1, "delete", "a", [:], ["transforms": ["n": ["op": "increment", "by": 1]]])),
      ("transform", F.update(1, "a", [:], ["transforms": ["n": ["op": "multiply", "by": 1]]])),
      ("transform", F.update(1, "a", [:], ["transforms": ["n": ["op": "increment", "by": "1.5"]]])),
      ("transform", F.update(1, "a", [:], ["transforms": ["n": ["op": "increment", "by": "01"]]])),
      ("transform", F.update(1, "a", [:], ["transforms": ["n": ["op": "arrayUnion", "values": []]]])),
      ("transform", F.update(1, "a", [:], ["transforms": ["n": ["op": "arrayRemove", "values": [[1]]]]])),
    ] as [(String, JSONValue)])
  func malformed(what: String, mutation: JSONValue) {
    var server = F()
    guard case .failure(let error) = server.push([F.insert(2, "fine"), mutation]) else {
      Issue.record("accepted")
      return
    }
    #expect(error.code == "22023")
    #expect(error.message.contains("mutation 2"), "the position counts from 1")
    #expect(error.message.contains(what))
    #expect(server.state.horizon == 0, "nothing was applied")
  }

  @Test func aKeyMustBeCanonical() {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", keyColumns: ["a", "b"])])
    #expect(server.push([F.insert(1, #"["1","2"]"#)]).code == "22023")
    #expect(server.verdict(F.insert(1, #"["1", "2"]"#)) == "applied")
  }

  @Test func hlcTablesNeedAClock() {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", conflictMode: .hlc)])
    #expect(server.push([F.insert(1, "a")]).code == "22023")
    #expect(server.push([F.mutation(1, "delete", "a", [:], ["hlc": 1])]).code == "22023")
  }

  @Test func theSchemaGateComesFirst() {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", minSchemaVersion: 2)])
    #expect(server.push([5]).json == ["signal": ["type": "RESET_REQUIRED"]])
    #expect(server.push([5], schema: 2).code == "22023")
  }

  @Test func settingsRefuseWholeRequests() {
    var pullOnly = F(["todos": SyncTable(bucketColumn: "owner_id", syncMode: .pullOnly)])
    #expect(pullOnly.push([F.insert(1, "a")]).code == "KZP01")
    var small = F { $0.maxBatchSize = 2 }
    #expect(small.push((1...3).map { F.insert($0, "k\($0)") }).code == "KZP02")
    #expect(small.push((1...2).map { F.insert($0, "k\($0)") }).code == nil)
    var unlimited = F { $0.maxBatchSize = nil }
    #expect(unlimited.push((1...600).map { F.insert($0, "k\($0)") }).code == nil)
    var atomic = F { $0.requireAtomic = true }
    #expect(atomic.push([F.insert(1, "a")]).code == "KZP03")
    #expect(atomic.push([F.insert(1, "a")], atomic: true).code == nil)
  }

  @Test func anUnknownTableFailsTheWholePush() {
    var server = F()
    #expect(server.push([F.insert(1, "a"), F.mutation(2, "insert", "b", [:], ["table": "ghosts"])]).code == "0A000")
    #expect(server.state.dump() == "seq 0, reaped to 0\n", "the first mutation is taken back with its verdict")
  }

  @Test(
    arguments: [
      (["batch": ["atomic": false, "mutations": []], "schema_version": 1], "PGRST202"),
      (["batch": [:], "last_mutation_id": nil, "schema_version": 1], "22023"),
      (["batch": ["mutations": []], "last_mutation_id": "x", "schema_version": 1], "22P02"),
      (["batch": ["mutations": []], "last_mutation_id": nil, "schema_version": 1, "client_id": "x"], "22P02"),
      (["batch": ["mutations": []], "last_mutation_id": nil, "schema_version": "one"], "22P02"),
      ([1], "PGRST102"),
    ] as [(JSONValue, String)])
  func argumentsAreChecked(body: JSONValue, code: String) {
    var server = F()
    #expect(server.state.push(body, caller: server.caller, now: 0).code == code)
  }

  @Test func anonymousCallersMayNothing() {
    var server = F()
    server.caller = .anonymous
    let answer = server.push([F.insert(1, "a")])
    #expect((answer.code, answer.status) == ("42501", 401))
  }
}
