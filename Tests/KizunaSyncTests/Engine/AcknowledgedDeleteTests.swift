import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// A row that this host took away stays away, also when no tombstone comes to say so: a user who never pulled a row of the
/// bucket is told of no delete.
@Suite struct AcknowledgedDeleteTests {
  /// Sends everything that is queued. Applied writes are answered with the row that is given for their place, if any.
  private func push(_ fixture: ReplicaFixture, showing rows: [Int: RowMap] = [:]) throws {
    let taken = try fixture.replica.take(limit: 500)
    let verdicts = taken.entries.enumerated().map { index, entry in
      PushReply.Verdict(mutationID: entry.mutationID, reason: nil, serverRow: rows[index])
    }
    _ = try fixture.replica.settle(verdicts, of: taken)
  }

  private func increment(_ fixture: ReplicaFixture, _ pk: String) throws {
    _ = try fixture.apply(
      LocalWrite(table: "todos", pk: pk, op: .update, transforms: ["n": ["op": "increment", "by": 2]]))
  }

  @Test func inOneAnswerWithARowOfTheServer() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("ALTER TABLE todos ADD COLUMN n; INSERT INTO todos(id, n) VALUES ('c', 3)")
    try increment(fixture, "c")
    try fixture.sql("UPDATE todos SET id = 'b' WHERE id = 'c'")
    _ = try fixture.queue()
    try push(fixture, showing: [1: ["id": "c", "n": 5, "owner_id": .string(owner)]])
    #expect(try fixture.rows().keys.sorted() == ["b"])
    try fixture.pull([("b", ["id": "b", "n": 5])], cursor: "8")
    #expect(try fixture.rows().keys.sorted() == ["b"])
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  /// Somebody else took it away, or to another bucket, before any transfer brought it.
  @Test(arguments: [nil, "CONSTRAINT"], [false, true])
  func aRowThatOnlyAnAnswerBroughtIsToBeInTheNextTransfer(reason: String?, isThere: Bool) throws {
    let fixture = try ReplicaFixture()
    try increment(fixture, "c")
    let row: RowMap = ["id": "c", "n": 5, "title": "theirs", "owner_id": .string(owner)]
    let taken = try fixture.replica.take(limit: 500)
    _ = try fixture.replica.settle(
      taken.entries.map { PushReply.Verdict(mutationID: $0.mutationID, reason: reason, serverRow: row) }, of: taken)
    #expect(try fixture.rows()["c"]?["title"] == "theirs")
    #expect(try fixture.replica.outboxDepth() == 0)
    // What is written to it meanwhile shows and is sent.
    try fixture.sql("UPDATE todos SET title = 'mine' WHERE id = 'c'")
    #expect(try fixture.queue().last == #"update c {"title":"mine"}"#)
    try push(fixture)
    #expect(try fixture.rows()["c"]?["title"] == "mine")
    let mine: JSONValue = ["id": "c", "n": 5, "title": "mine", "owner_id": .string(owner)]
    try fixture.pull(isThere ? [("c", mine)] : [], cursor: "9")
    #expect(try fixture.rows().keys.sorted() == (isThere ? ["c"] : []))
    #expect(try fixture.database.value("SELECT count(*) FROM _kizunasync_outbox") == .integer(0))
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  /// A row that a transfer brought needs none to bring it again.
  @Test(arguments: [nil, "CONSTRAINT"]) func aRowThatWasPulledStays(reason: String?) throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("c", ["id": "c", "n": 3, "owner_id": .string(owner)])], cursor: "3")
    try increment(fixture, "c")
    let taken = try fixture.replica.take(limit: 500)
    let row: RowMap = ["id": "c", "n": 5, "owner_id": .string(owner)]
    _ = try fixture.replica.settle(
      taken.entries.map { PushReply.Verdict(mutationID: $0.mutationID, reason: reason, serverRow: row) }, of: taken)
    try fixture.pull(cursor: "9")
    #expect(try fixture.rows()["c"]?["n"] == 5)
  }

  @Test func inALaterPush() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("ALTER TABLE todos ADD COLUMN n; INSERT INTO todos(id, n) VALUES ('c', 3)")
    try increment(fixture, "c")
    _ = try fixture.queue()
    try push(fixture, showing: [1: ["id": "c", "n": 5]])
    try fixture.sql("DELETE FROM todos")
    _ = try fixture.queue()
    try push(fixture)
    try fixture.pull(cursor: "9")
    #expect(try fixture.rows().isEmpty)
  }

  /// The answer was lost, somebody made the row anew, and a transfer brought it before the answer came again.
  @Test func aRowThatWasMadeAnewStays() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["id": "a", "n": 1])], cursor: "1")
    try fixture.sql("DELETE FROM todos")
    _ = try fixture.queue()
    let taken = try fixture.replica.take(limit: 500)
    try fixture.pull([("a", ["id": "a", "n": 9])], cursor: "3")
    _ = try fixture.replica.settle(
      taken.entries.map { PushReply.Verdict(mutationID: $0.mutationID, reason: nil, serverRow: nil) }, of: taken)
    #expect(try fixture.rows().isEmpty)
    try fixture.pull(cursor: "4")
    #expect(try fixture.rows()["a"]?["n"] == 9)
  }

  /// What is inserted after the delete shows, and what a transfer brings after it.
  @Test func aLaterInsertShows() throws {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["id": "a", "n": 1, "x": 1])], cursor: "1")
    try fixture.sql("DELETE FROM todos")
    _ = try fixture.queue()
    try push(fixture)
    try fixture.sql("INSERT INTO todos(id, n) VALUES ('a', 2)")
    _ = try fixture.queue()
    #expect(try fixture.rows()["a"]?["n"] == 2)
    #expect(try fixture.rows()["a"]?["x"]?.isNull ?? true)
    try push(fixture)
    try fixture.pull([("a", ["id": "a", "n": 2, "x": nil])], cursor: "5")
    #expect(try fixture.rows()["a"]?["n"] == 2)
  }

  @Test func aRowGivenToAnotherBucketLeaves() throws {
    let fixture = try ReplicaFixture()
    let buckets = [PullRequest.Bucket(table: "todos", params: ["owner_id": .string(owner)])]
    func close(_ cursor: String, _ rows: String = "[]") throws {
      let text = #"{"rows": \#(rows), "tombstones": [], "cursor": "\#(cursor)", "has_more": false, "signal": null}"#
      let position = try fixture.replica.pullPosition(asking: buckets)
      _ = try fixture.replica.close(with: PullPage(checking: Array(text.utf8)), at: position)
    }
    let rows = ["c", "d"].map {
      #"{"table": "todos", "pk": "\#($0)", "row": {"id": "\#($0)", "n": 3, "owner_id": "\#(owner)"}, "seq": "1"}"#
    }
    try close("1", "[\(rows.joined(separator: ","))]")
    for key in ["c", "d"] { try increment(fixture, key) }
    _ = try fixture.queue()
    try push(
      fixture,
      showing: [
        0: ["id": "c", "n": 5, "owner_id": .string(owner)], 1: ["id": "d", "n": 6, "owner_id": .string(owner)],
      ])
    try fixture.sql("UPDATE todos SET owner_id = 'somebody' WHERE id = 'c'; UPDATE todos SET n = 7")
    _ = try fixture.queue()
    try push(fixture)
    #expect(try fixture.rows().keys.sorted() == ["d"])
    try close("9")
    #expect(try fixture.rows().keys.sorted() == ["d"])
  }
}
