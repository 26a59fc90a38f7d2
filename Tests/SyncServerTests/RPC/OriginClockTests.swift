import HostKit
import SyncServer
import Testing

/// Tables that resolve by origin clock, and the conflict journal (Kizuna wire contract §5.5 and §5.6).
@Suite struct OriginClockTests {
  typealias F = ServerFixture

  private func hlc(_ second: Int, _ node: String = "n") -> JSONValue {
    .string("2026-01-01T00:00:\(second < 10 ? "0" : "")\(second).000Z|0|\(node)")
  }

  private var server: F { F(["todos": SyncTable(bucketColumn: "owner_id", conflictMode: .hlc)]) }

  @Test func eachColumnGoesToTheLaterClock() throws {
    var server = server
    try server.upsert("a", ["x": 1, "y": 1], hlc: hlc(1).stringValue)
    try server.upsert("a", ["y": 2], owner: nil, hlc: hlc(3).stringValue)
    #expect(server.verdict(F.update(1, "a", ["x": 9, "y": 9], ["hlc": hlc(2)])) == "applied")
    #expect(server.state.row("todos", "a") == ["x": 9, "y": 2, "owner_id": .string(F.me)])
    #expect(server.verdict(F.update(2, "a", ["x": 8], ["hlc": hlc(2)])) == "SUPERSEDED", "an equal clock loses")
    #expect(
      server.verdict(F.update(3, "a", ["new": 1], ["hlc": hlc(1)])) == "applied", "nothing stored, nothing to lose to")
  }

  @Test func losingColumnsDoNotStopTransforms() throws {
    var server = server
    try server.upsert("a", ["x": 1, "n": 1], hlc: hlc(3).stringValue)
    let mutation = F.update(1, "a", ["x": 9], ["hlc": hlc(1), "transforms": ["n": ["op": "increment", "by": 1]]])
    #expect(server.verdict(mutation) == "applied")
    #expect(server.state.row("todos", "a")?["x"] == 1)
    #expect(server.state.row("todos", "a")?["n"] == 2)
  }

  @Test func clocksFarAheadAreLowered() throws {
    var server = server
    try server.upsert("a", ["x": 1], hlc: hlc(0).stringValue)
    #expect(server.verdict(F.update(1, "a", ["x": 2], ["hlc": hlc(50)])) == "applied")
    server.now += 1000
    #expect(server.verdict(F.update(2, "a", ["x": 3], ["hlc": hlc(6)])) == "applied", "50 was stored as 5")
  }

  @Test func deletesIgnoreClocksAndForgetThem() throws {
    var server = server
    try server.upsert("a", ["x": 1], hlc: hlc(4).stringValue)
    #expect(server.verdict(F.mutation(1, "delete", "a", [:], ["hlc": hlc(1)])) == "applied")
    server.state.reap(now: nil)
    #expect(
      server.verdict(F.mutation(2, "insert", "a", ["owner_id": .string(F.me), "x": 2], ["hlc": hlc(1)])) == "applied")
  }

  @Test func anUnchangedValueStillMovesItsClock() throws {
    var server = server
    try server.upsert("a", ["x": 1], hlc: hlc(1).stringValue)
    #expect(server.verdict(F.update(1, "a", ["x": 1], ["hlc": hlc(3)])) == "applied")
    #expect(server.state.horizon == 1)
    #expect(server.pull().rows == ["a"])
    #expect(server.verdict(F.update(2, "a", ["x": 2], ["hlc": hlc(2)])) == "SUPERSEDED")
  }

  @Test func theJournalTellsWhatTheNewestWriteOverwrote() throws {
    var server = F(["todos": SyncTable(bucketColumn: "owner_id", conflictJournal: true)])
    try server.upsert("a", ["x": 1, "y": nil, "z": 1])
    _ = server.push([F.update(1, "a", ["z": 2, "x": 2, "y": 2, "w": 2])])
    let expected: JSONValue = [
      [
        "table": "todos", "pk": "a", "column_name": "x", "loser_value": 1, "winner_mutation_id": F.id(1),
        "winner_seq": "2", "conflict_mode": "arrival",
      ],
      [
        "table": "todos", "pk": "a", "column_name": "z", "loser_value": 1, "winner_mutation_id": F.id(1),
        "winner_seq": "2", "conflict_mode": "arrival",
      ],
    ]
    #expect(server.pull("1").json["conflicts"] == expected)
    try server.upsert("a", ["x": 3])
    #expect(server.pull("1").json["conflicts"] == nil, "they belong to the row's newest seq")
  }
}
