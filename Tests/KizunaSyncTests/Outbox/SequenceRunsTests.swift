import Testing

@testable import KizunaSync

@Suite struct SequenceRunsTests {
  @Test(
    arguments: [
      ([], []), ([7], [7...7]), ([1, 2, 3], [1...3]), ([1, 3, 4, 9], [1...1, 3...4, 9...9]),
      ([Int64.max - 1, Int64.max], [(Int64.max - 1)...Int64.max]),
    ] as [([Int64], [ClosedRange<Int64>])])
  func aRunEndsAtAGap(numbers: [Int64], ranges: [ClosedRange<Int64>]) {
    #expect(SequenceRuns(numbers).ranges == ranges)
  }

  /// What waits between two writes that were sent is neither marked as sent nor acknowledged with them.
  @Test func whatIsHeldInBetweenStaysQueued() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("INSERT INTO todos(id) VALUES ('a'), ('b'), ('c'), ('d'), ('e')")
    try fixture.replica.harvestNow()
    try fixture.database.run("UPDATE _kizunasync_outbox SET tbl = 'others' WHERE pk IN ('b', 'd')")
    func states() throws -> [String] {
      try fixture.database.map("SELECT pk || state FROM _kizunasync_outbox ORDER BY seq") { $0.string(0) }
    }
    let taken = try fixture.replica.take(limit: 500)
    #expect(taken.entries.map(\.pk) == ["a", "c", "e"])
    #expect(try states() == ["a1", "b0", "c1", "d0", "e1"])
    let verdicts = taken.entries.map {
      PushReply.Verdict(mutationID: $0.mutationID, reason: $0.pk == "c" ? "RLS_DENIED" : nil, serverRow: nil)
    }
    _ = try fixture.replica.settle(verdicts, of: taken)
    #expect(try states() == ["a2", "b0", "d0", "e2"])
    #expect(try fixture.database.meta(.lastMutationID).text == taken.entries.last?.mutationID)
    #expect(
      try fixture.database.map("SELECT mutation_id FROM _kizunasync_pushed ORDER BY n") { $0.string(0) }
        == [taken.entries[0].mutationID, taken.entries[2].mutationID])
  }

  /// Writes that were acknowledged stay until the next checkpoint. A request must not go through all of them.
  @Test(arguments: [
    "SELECT 1 FROM _kizunasync_outbox WHERE state < 2 LIMIT 1",
    "SELECT count(*) FROM _kizunasync_outbox WHERE state < 2",
    OutboxEntry.selection + " WHERE state < 2 AND tbl NOT IN (SELECT value FROM json_each('[]')) ORDER BY seq",
  ])
  func theBeginningOfALongQueueIsFoundByAnIndex(query: String) throws {
    let plan = try ReplicaFixture().database.map("EXPLAIN QUERY PLAN \(query)") { $0.string(3) }
    #expect(plan.first?.contains("_kizunasync_outbox_waiting") == true, "\(plan)")
  }
}
