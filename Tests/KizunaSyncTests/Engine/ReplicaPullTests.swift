import HostKit
import Testing

@testable import KizunaSync

/// T3 and T5: pages, the closing transaction, rehydration.
@Suite struct ReplicaPullTests {
  @Test func pagesStayInvisibleUntilTheLast() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": 1]), ("b", ["v": 1])], cursor: "0:2", hasMore: true)
    #expect(try fixture.rows().isEmpty)
    #expect(try fixture.replica.durableCursor() == "0")
    #expect(try fixture.replica.pullPosition(asking: []).cursor == "0:2")
    try fixture.pull([("a", ["v": 2])], tombstones: ["b"], cursor: "4")
    #expect(try fixture.rows() == ["a": ["id": "a", "v": 2]])
    #expect(try fixture.replica.durableCursor() == "4")
    #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_pages"))
  }

  @Test func withinAPageRowsComeBeforeTombstones() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": 1])], tombstones: ["a"], cursor: "2")
    #expect(try fixture.rows().isEmpty)
  }

  @Test func absentAndNullStayApart() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": nil]), ("b", [:]), ("c", ["v": ""])], cursor: "1")
    #expect(try fixture.rows() == ["a": ["id": "a", "v": nil], "b": ["id": "b"], "c": ["id": "c", "v": ""]])
  }

  @Test func redeliveryChangesNothing() throws {
    let fixture = try ReplicaFixture()
    let rows: [(pk: String, row: JSONValue)] = [("a", ["v": 1, "j": ["k": [1, 2]]]), ("b", ["v": nil])]
    try fixture.pull(rows, cursor: "2")
    let before = try fixture.rows()
    try fixture.pull(rows, tombstones: ["zzz"], cursor: "2")
    #expect(try fixture.rows() == before)
    #expect(try fixture.queue() == [])
  }

  @Test func aTransferFromTheStartRemovesWhatItDoesNotContain() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": 1]), ("b", ["v": 1]), ("c", ["v": 1])], cursor: "3")
    try fixture.sql("UPDATE todos SET v = 9 WHERE id = 'b'; INSERT INTO todos(id, v) VALUES ('new', 1)")
    _ = try fixture.queue()
    try fixture.replica.beginRehydration(generation: fixture.replica.generation())
    #expect(try fixture.replica.pullPosition(asking: []).cursor == "0")
    #expect(try fixture.rows().count == 4, "nothing is removed before the new state is there")
    try fixture.pull([("d", ["v": 4])], cursor: "0:8", hasMore: true)
    try fixture.pull([("c", ["v": 3])], cursor: "9")
    // The queued insert shows, the queued update of a row that is gone does not.
    #expect(try fixture.rows().mapValues { $0["v"] } == ["c": 3, "d": 4, "new": 1])
    #expect(try fixture.replica.isRehydrating() == false)
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  @Test func aTransferThatTookTooLongStartsAgain() async throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": 1])], cursor: "0:2", hasMore: true)
    await fixture.clock.advance(by: .seconds(86_401))
    #expect(try fixture.replica.pullPosition(asking: []).cursor == "0")
  }

  @Test func aTableThatIsAddedIsReadFromTheStart() throws {
    let fixture = try ReplicaFixture()
    let one = PullRequest.Bucket(table: "todos", params: [:])
    let two = PullRequest.Bucket(table: "notes", params: [:])
    let position = try fixture.replica.pullPosition(asking: [one])
    _ = try fixture.replica.close(
      with: PullPage(checking: Array(#"{"cursor":"5","has_more":false}"#.utf8)), at: position)
    #expect(try fixture.replica.pullPosition(asking: [one]).cursor == "5")
    #expect(try fixture.replica.pullPosition(asking: [one, two]).cursor == "0")
  }

  @Test func anAnswerOfAnEarlierGenerationIsDropped() throws {
    let fixture = try ReplicaFixture()
    let position = try fixture.replica.pullPosition(asking: [])
    try fixture.replica.reset()
    let page = try PullPage(checking: Array(#"{"cursor":"5","has_more":false}"#.utf8))
    #expect(throws: Replica.StaleAnswer.self) { try fixture.replica.close(with: page, at: position) }
    #expect(throws: Replica.StaleAnswer.self) { try fixture.replica.stage(page, at: position) }
    #expect(try fixture.replica.durableCursor() == "0")
  }

  @Test func overwritesByOthersAreKeptOnceAndOwnOnesNot() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": 1])], cursor: "1")
    let id = RandomUUID.make()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["v": 2], mutationID: id))
    func conflict(_ winner: String) -> JSONValue {
      [
        "table": "todos", "pk": "a", "column_name": "v", "loser_value": 1, "winner_mutation_id": .string(winner),
        "winner_seq": "2", "conflict_mode": "arrival",
      ]
    }
    let members: [String: JSONValue] = ["conflicts": [conflict(id), conflict("other")]]
    let events = try fixture.pull([("a", ["v": 3])], cursor: "2", members: members)
    #expect(events.count == 2)
    #expect(try fixture.pull([("a", ["v": 3])], cursor: "3", members: members) == [.localChanged])
    let kept = try fixture.replica.overwrites(includeDismissed: false)
    #expect(kept.map(\.winnerMutationId) == ["other"])
    #expect(try fixture.replica.dismissOverwrite(kept[0].id))
    #expect(try !fixture.replica.dismissOverwrite(kept[0].id))
    #expect(try fixture.replica.overwrites(includeDismissed: false).isEmpty)
  }
}
