import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// T1, T2 and T4.
@Suite struct ReplicaPushTests {
  private func fixture() throws -> ReplicaFixture {
    let fixture = try ReplicaFixture()
    try fixture.pull([("a", ["v": 1, "n": 1])], cursor: "1")
    return fixture
  }

  @Test func anAcknowledgedWriteStaysOverTheImageUntilACheckpointCloses() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2")
    try fixture.push([nil])
    #expect(try fixture.replica.outboxDepth() == 0)
    #expect(try fixture.rows()["a"]?["v"] == 2)
    // A transfer that began before the acknowledgement still carries the old value, then the new one.
    try fixture.pull([("a", ["v": 1, "n": 5])], cursor: "1:2", hasMore: true)
    #expect(try fixture.rows()["a"]?["v"] == 2)
    try fixture.pull([("a", ["v": 2, "n": 5])], cursor: "3")
    #expect(try fixture.rows()["a"] == ["id": "a", "v": 2, "n": 5])
    #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_outbox"))
  }

  @Test func aRefusedWriteIsPutBackAndJournalled() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2, n = 2")
    let events = try fixture.push([(reason: "CONSTRAINT", row: ["v": 1, "n": 7])])
    guard case .mutationRejected(let id, "CONSTRAINT") = events.first else {
      Issue.record("\(events)")
      return
    }
    #expect(events.last == .localChanged)
    #expect(try fixture.rows()["a"] == ["id": "a", "v": 1, "n": 7])
    let journal = try fixture.replica.rejections(includeDismissed: false)
    #expect(journal.map(\.mutationId) == [id])
    #expect(journal[0].changedColumns == ["n", "v"] && journal[0].kind == "REJECTED")
    #expect(journal[0].serverRowJson == "{\"n\":7,\"v\":1}")
    #expect(try fixture.replica.dismissRejection(id))
    #expect(try !fixture.replica.dismissRejection(id))
  }

  @Test func aRefusalWithoutARowRemovesIt() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2")
    try fixture.push([(reason: "DELETE_WINS", row: nil)])
    #expect(try fixture.rows().isEmpty)
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  @Test func aWriteMadeMeanwhileStaysOnTop() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2")
    let taken = try fixture.replica.take(limit: 500)
    try fixture.sql("UPDATE todos SET n = 9")
    _ = try fixture.replica.settle(
      [
        PushReply.Verdict(mutationID: taken.entries[0].mutationID, reason: "PRECONDITION", serverRow: ["v": 5, "n": 5])
      ],
      of: taken)
    #expect(try fixture.rows()["a"] == ["id": "a", "v": 5, "n": 9])
    #expect(try fixture.queue() == ["update a {\"n\":9}"])
  }

  @Test func transformsAreNotCountedTwice() throws {
    let fixture = try fixture()
    for _ in 0..<2 {
      _ = try fixture.apply(
        LocalWrite(table: "todos", pk: "a", op: .update, transforms: ["n": ["op": "increment", "by": 1]]))
    }
    #expect(try fixture.rows()["a"]?["n"] == 3)
    let taken = try fixture.replica.take(limit: 1)
    _ = try fixture.replica.settle(
      [PushReply.Verdict(mutationID: taken.entries[0].mutationID, reason: nil, serverRow: ["v": 1, "n": 2])], of: taken)
    #expect(try fixture.rows()["a"]?["n"] == 3)
  }

  @Test func anAbortedGroupIsUndoneWhole() throws {
    let fixture = try fixture()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["v": 5], group: "g"))
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "b", op: .insert, columns: ["id": "b"], group: "g"))
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "c", op: .insert, columns: ["id": "c"]))
    let taken = try fixture.replica.take(limit: 1)
    #expect(taken.entries.count == 2)
    let offender = taken.entries[1].mutationID
    let events = try fixture.replica.abort(taken, offender: offender, reason: "CONSTRAINT", serverRow: nil)
    #expect(events == [.batchAborted(offenderMutationId: offender, reason: "CONSTRAINT"), .localChanged])
    #expect(try fixture.rows().mapValues { $0["v"] } == ["a": 1, "c": nil])
    let journal = try fixture.replica.rejections(includeDismissed: false)
    #expect(journal.map(\.kind) == ["BATCH_ABORTED"])
  }

  @Test func aDeadLetterIsJournalledAndPutBack() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2")
    let taken = try fixture.replica.take(limit: 1)
    for count in 1...4 { #expect(try fixture.replica.countFailure(taken, message: "no") == count) }
    let events = try fixture.replica.deadLetter(taken, reason: "PERMANENT_TRANSPORT")
    #expect(events.first == .deadLetter(mutationId: taken.entries[0].mutationID, reason: "PERMANENT_TRANSPORT"))
    #expect(try fixture.rows()["a"]?["v"] == 1)
    #expect(try fixture.replica.rejections(includeDismissed: false).map(\.kind) == ["DEAD_LETTER"])
  }

  @Test func aRefusedInsertDoesNotTakeAwayARowTheServerShows() throws {
    let fixture = try fixture()
    try fixture.sql("INSERT INTO todos(id, v) VALUES ('b', 1)")
    _ = try fixture.queue()
    try fixture.pull([("b", ["v": 7])], cursor: "2")
    try fixture.push([(reason: "RLS_DENIED", row: nil)])
    #expect(try fixture.rows()["b"]?["v"] == 7)
  }

  @Test(arguments: [nil, ["v": 1, "n": 1, "owner_id": .string(owner)]] as [RowMap?])
  func aRowThatCouldNotBeGivenAwayStays(serverRow: RowMap?) throws {
    let fixture = try fixture()
    try fixture.pull([("a", ["v": 1, "n": 1, "owner_id": .string(owner)])], cursor: "2")
    try fixture.sql("UPDATE todos SET owner_id = 'somebody else', v = 2")
    // Older servers say RLS_DENIED without the row that they still show.
    try fixture.push([(reason: "RLS_DENIED", row: serverRow)])
    #expect(try fixture.rows() == ["a": ["id": "a", "v": 1, "n": 1, "owner_id": .string(owner)]])
    #expect(try fixture.replica.rejections(includeDismissed: false).map(\.changedColumns) == [["owner_id", "v"]])
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  @Test func aRowGivenAwayByAStrictServerComesBackAsItWas() throws {
    let fixture = try ReplicaFixture()
    var server = ReplicaServer(["todos": SyncTable(bucketColumn: "owner_id")])
    try fixture.sql("INSERT INTO todos(id) VALUES ('a')")
    try server.sync(fixture.replica)
    for give in [
      "UPDATE todos SET owner_id = 'x'", "UPDATE todos SET owner_id = NULL",
      "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET owner_id = 'x'; DELETE FROM _kizunasync_group; COMMIT",
    ] {
      try fixture.sql(give)
      #expect(try server.sync(fixture.replica) == ["RLS_DENIED"])
      #expect(try fixture.rows()["a"]?["owner_id"] == .string(owner))
    }
  }

  @Test func rememberedIDsAreBounded() throws {
    let fixture = try fixture()
    for index in 0..<1005 {
      try fixture.database.run("INSERT INTO _kizunasync_pushed(mutation_id) VALUES (?)", .text("old-\(index)"))
    }
    try fixture.sql("UPDATE todos SET v = 2")
    try fixture.push([nil])
    #expect(try fixture.database.value("SELECT count(*) FROM _kizunasync_pushed") == 1000)
  }
}
