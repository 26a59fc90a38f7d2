import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Writes of tables that leave the configuration, and come back.
@Suite struct HeldWritesTests {
  private static let both: [String: KizunaSyncTableConfig] = [
    "a": KizunaSyncTableConfig(columns: ["v": .text]), "b": KizunaSyncTableConfig(columns: ["v": .text]),
  ]
  private static let onlyB = both.filter { $0.key == "b" }

  private func open(
    _ path: String, _ tables: [String: KizunaSyncTableConfig] = both
  ) throws -> ReplicaFixture { try ReplicaFixture(tables, path: path) }

  private func page(_ fixture: ReplicaFixture, _ rows: [(table: String, pk: String, v: JSONValue)], cursor: String)
    throws
  {
    let buckets = fixture.replica.settings.tables.keys.sorted().map { PullRequest.Bucket(table: $0, params: [:]) }
    let position = try fixture.replica.pullPosition(asking: buckets)
    let page: JSONValue = [
      "rows": .array(
        rows.map { ["table": .string($0.table), "pk": .string($0.pk), "row": ["v": $0.v], "seq": "1"] }),
      "tombstones": [], "cursor": .string(cursor), "has_more": false, "signal": nil,
    ]
    _ = try fixture.replica.close(with: PullPage(checking: JSONWriter.data(page)), at: position)
  }

  private func texts(_ fixture: ReplicaFixture, _ query: String) throws -> [String] {
    try fixture.database.map(query) { $0.string(0) }
  }

  @Test func whatIsWrittenMeanwhileWaitsAndTravelsLater() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/r.db"
      var fixture = try open(path)
      try page(fixture, [("a", "old", "1"), ("a", "gone", "1")], cursor: "1")
      try fixture.sql("INSERT INTO a(id, v) VALUES ('captured', '1')")
      fixture.replica.close()

      fixture = try open(path, Self.onlyB)
      _ = try fixture.queue()
      try fixture.sql(
        "INSERT INTO a(id, v) VALUES ('away', '2'); UPDATE a SET v = '3' WHERE id = 'old'; DELETE FROM a WHERE id = 'gone'; "
          + "INSERT INTO b(id, v) VALUES ('x', '1')")
      #expect(try fixture.queue() == [#"insert x {"v":"1"}"#])
      #expect(fixture.warnings.withLock { $0 }.filter { $0 == "store.writes_held" }.count == 1)
      let status = try KizunaSyncReplicaStatus.read(databasePath: path)
      #expect(status.heldWrites == ["a": 4])
      #expect(status.outboxDepth == 1)
      #expect(status.oldestWrite?.table == "b")
      #expect(try KizunaSyncOutbox.captured(databasePath: path) == [.init(table: "a", changes: 4)])
      try fixture.push([nil])
      try page(fixture, [("b", "x", "1")], cursor: "2")
      #expect(try fixture.queue() == [])
      fixture.replica.close()

      // Nothing of it is lost when everything is read from the start, and what was written first is sent first.
      fixture = try open(path)
      #expect(
        try fixture.queue() == [
          #"insert captured {"v":"1"}"#, #"insert away {"v":"2"}"#, #"update old {"v":"3"}"#, "delete gone {}",
        ])
      try page(fixture, [("a", "old", "1"), ("a", "gone", "1"), ("b", "x", "1")], cursor: "3")
      #expect(try texts(fixture, "SELECT id || v FROM a ORDER BY id") == ["away2", "captured1", "old3"])
      #expect(try KizunaSyncReplicaStatus.read(databasePath: path).heldWrites == [:])
      #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_capture WHERE seq < 0"))
      try fixture.push([nil, nil, nil, nil])
      try page(
        fixture, [("a", "captured", "1"), ("a", "away", "2"), ("a", "old", "3"), ("b", "x", "1")], cursor: "4")
      #expect(try fixture.replica.brokenInvariants() == [])
      fixture.replica.close()
    }
  }

  /// Another client of the file, whose configuration knows other tables, is at work at the same time.
  @Test func twoConfigurationsShareAFile() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/r.db"
      let one = try open(path)
      let other = try open(path, Self.onlyB)
      try one.sql("INSERT INTO a(id, v) VALUES ('1', '1'); INSERT INTO b(id, v) VALUES ('1', '1')")
      #expect(try other.queue() == [#"insert 1 {"v":"1"}"#])
      #expect(try one.replica.hasWork())
      #expect(try one.queue() == [#"insert 1 {"v":"1"}"#, #"insert 1 {"v":"1"}"#])
      #expect(try one.replica.outboxDepth() == 2)
      #expect(try other.replica.outboxDepth() == 1)
      one.replica.close()
      other.replica.close()
    }
  }

  enum State: CaseIterable { case queued, sent, acknowledged, parked }

  @Test(arguments: State.allCases) func theRestConverges(state: State) throws {
    try withScratchFolder { folder in
      let path = "\(folder)/r.db"
      var fixture = try open(path)
      try page(fixture, [("a", "1", "1")], cursor: "1")
      try fixture.sql("UPDATE a SET v = '2'")
      switch state {
      case .queued: _ = try fixture.queue()
      case .sent: _ = try fixture.replica.take(limit: 500)
      case .acknowledged: try fixture.push([nil])
      case .parked:
        try fixture.sql("INSERT INTO _kizunasync_parked VALUES ('a', '9', '{\"v\":\"1\"}', 'because')")
        _ = try fixture.queue()
      }
      fixture.replica.close()

      fixture = try open(path, Self.onlyB)
      let held = try fixture.database.value("SELECT count(*) FROM _kizunasync_outbox")
      try fixture.sql("INSERT INTO b(id, v) VALUES ('x', '1')")
      #expect(try fixture.replica.hasWork())
      let taken = try fixture.replica.take(limit: 500)
      #expect(taken.entries.map(\.table) == ["b"])
      _ = try fixture.replica.settle(
        taken.entries.map { PushReply.Verdict(mutationID: $0.mutationID, reason: nil, serverRow: nil) }, of: taken)
      #expect(try !fixture.replica.hasWork())
      #expect(try fixture.replica.outboxDepth() == 0)
      try page(fixture, [("b", "x", "1"), ("b", "y", "1")], cursor: "2")
      #expect(try texts(fixture, "SELECT id FROM b ORDER BY id") == ["x", "y"])
      #expect(try fixture.database.value("SELECT count(*) FROM _kizunasync_outbox") == held)
      let now = try fixture.replica.pullPosition(asking: [PullRequest.Bucket(table: "b", params: [:])])
      let empty: JSONValue = ["rows": [], "tombstones": [], "cursor": "2", "has_more": false, "signal": nil]
      #expect(try fixture.replica.isNothingNew(PullPage(checking: JSONWriter.data(empty)), at: now))
      #expect(try fixture.replica.take(limit: 500).entries.isEmpty)
      fixture.replica.close()

      fixture = try open(path)
      if state != .acknowledged { #expect(try fixture.replica.take(limit: 500).entries.map(\.pk) == ["1"]) }
      try page(fixture, [("a", "1", "1"), ("b", "x", "1"), ("b", "y", "1")], cursor: "3")
      #expect(try texts(fixture, "SELECT v FROM a WHERE id = '1'") == [state == .acknowledged ? "1" : "2"])
      fixture.replica.close()
    }
  }

  /// What is all-or-nothing with a write that is held waits too, and so does what changes the same rows later.
  @Test func groupsWaitAsAWhole() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/r.db"
      var fixture = try open(path)
      try page(fixture, [("a", "1", "1"), ("b", "1", "1"), ("b", "2", "1")], cursor: "1")
      fixture.replica.close()
      fixture = try open(path, Self.onlyB)
      try fixture.sql(
        "BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE b SET v = '2' WHERE id = '1'; UPDATE a SET v = '2'; "
          + "DELETE FROM _kizunasync_group; COMMIT; UPDATE b SET v = '3' WHERE id = '1'; UPDATE b SET v = '3' WHERE id = '2'"
      )
      let taken = try fixture.replica.take(limit: 500)
      #expect(taken.entries.map(\.columns) == [#"{"v":"3"}"#] && taken.entries.map(\.pk) == ["2"])
      fixture.replica.close()
      fixture = try open(path)
      _ = try fixture.queue()
      let group = try fixture.replica.take(limit: 500)
      #expect(Set(group.entries.map(\.table)) == ["a", "b"] && Set(group.entries.map(\.group)).count == 1)
      fixture.replica.close()
    }
  }

  /// The next user must neither send nor see what the last one wrote there.
  @Test func aResetForgetsThemToo() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/r.db"
      var fixture = try open(path)
      try page(fixture, [("a", "1", "1")], cursor: "1")
      fixture.replica.close()
      fixture = try open(path, Self.onlyB)
      try fixture.sql("INSERT INTO a(id, v) VALUES ('2', '2')")
      try fixture.replica.reset()
      #expect(try texts(fixture, "SELECT id FROM a") == [])
      fixture.replica.close()
      fixture = try open(path)
      #expect(try fixture.queue() == [])
      fixture.replica.close()
    }
  }

  @Test func aWriteThatWasRefusedThereCannotBeRetried() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/r.db"
      var fixture = try open(path)
      try fixture.sql("INSERT INTO a(id, v) VALUES ('2', '2')")
      try fixture.push([(reason: "CONSTRAINT", row: nil)])
      let id = try #require(try fixture.replica.rejections(includeDismissed: false).first?.mutationId)
      fixture.replica.close()
      fixture = try open(path, Self.onlyB)
      #expect(throws: KizunaSyncError.self) { try fixture.replica.retryRejection(id) }
      fixture.replica.close()
      fixture = try open(path)
      #expect(try fixture.replica.retryRejection(id).count == 1)
      fixture.replica.close()
    }
  }
}
