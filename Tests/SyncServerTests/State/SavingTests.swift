import HostKit
import SyncServer
import Testing

@Suite struct SavingTests {
  typealias F = ServerFixture

  private func lived() throws -> F {
    var server = F([
      "todos": SyncTable(bucketColumn: "owner_id", conflictMode: .hlc, conflictJournal: true),
      "codes": SyncTable(policy: .everyone),
    ])
    let clock = "2026-01-01T00:00:01.000Z|0|n"
    try server.upsert("a", ["n": 1, "e\u{301}": "é"], hlc: clock)
    try server.upsert("b", [:])
    try server.upsert("c", ["v": nil], table: "codes", owner: nil)
    _ = server.pull()
    try server.delete("b")
    _ = server.push([
      F.update(1, "a", ["n": 2], ["hlc": "2026-01-01T00:00:02.000Z|0|n"]),
      F.update(2, "x", ["n": 2], ["hlc": .string(clock)]),
    ])
    server.state.reap(now: nil)
    try server.upsert("d", [:])
    try server.delete("d")
    return server
  }

  @Test func aSavedStateIsTheState() throws {
    let server = try lived()
    let json = server.state.json
    let text = JSONWriter.text(json)
    var again = try #require(SyncServerState(JSONValue(parsing: text), configuration: server.state.configuration))
    #expect(again.json == json)
    #expect(again.dump() == server.state.dump())
    var original = server.state
    let pull: JSONValue = ["buckets": [F.bucket(), F.bucket("codes", [:])], "cursor": "3", "schema_version": 1]
    for cursor in ["0", "3", "4"] {
      let body = JSONValue.object(pull.objectValue?.merging(["cursor": .string(cursor)]) { $1 } ?? [:])
      #expect(again.pull(body, caller: .user(F.me)) == original.pull(body, caller: .user(F.me)))
    }
  }

  @Test func foreignDocumentsAreRefused() {
    let configuration = SyncServerConfiguration(tables: [:])
    for json in [nil, [:], ["version": 2, "changes": []], ["version": 1, "changes": [["k": "other"]]]] as [JSONValue] {
      #expect(SyncServerState(json, configuration: configuration) == nil)
    }
  }

  @Test func theDumpReads() throws {
    let server = try lived()
    #expect(
      server.state.dump() == """
        seq 7, reaped to 4
        codes c @3 {"v":null}
        todos a @5 in \(F.me) {"é":"é","n":2,"owner_id":"\(F.me)"}
        todos d @7 in \(F.me) deleted 2026-01-01T00:00:00.000Z
        grant \(F.me) todos \(F.me)
        verdict 00000000-0000-4000-8000-f10000000001 applied todos a by \(F.me)
        verdict 00000000-0000-4000-8000-f10000000002 RLS_DENIED todos x by \(F.me)

        """)
  }

  @Test func aCopyIsASnapshot() throws {
    var server = try lived()
    let snapshot = server.state
    try server.upsert("a", ["n": 99])
    #expect(snapshot.row("todos", "a")?["n"] == 2)
    #expect(server.state.row("todos", "a")?["n"] == 99)
  }
}
