import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Refused and dead writes queued again.
@Suite struct RetryTests {
  private func fixture(
    _ tables: [String: KizunaSyncTableConfig] = ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))]
  ) throws -> ReplicaFixture {
    let fixture = try ReplicaFixture(tables)
    try fixture.pull([("a", ["v": 1, "n": 1])], cursor: "1")
    return fixture
  }

  private func journal(_ fixture: ReplicaFixture) throws -> [String] {
    try fixture.replica.rejections(includeDismissed: true).map(\.mutationId)
  }

  private func entries(_ fixture: ReplicaFixture) throws -> [OutboxEntry] {
    try fixture.database.map(OutboxEntry.selection + " ORDER BY seq", [], OutboxEntry.init)
  }

  // MARK: What was decided

  @Test func aRefusedUpdateGoesOutAgainUnderANewID() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2 WHERE id = 'a'")
    try fixture.push([(reason: "CONSTRAINT", row: ["v": 7, "n": 1])])
    #expect(try fixture.rows()["a"]?["v"] == 7)
    let old = try #require(try journal(fixture).first)

    let queued = try fixture.replica.retryRejection(old)
    #expect(queued.count == 1 && queued[0] != old)
    #expect(try journal(fixture) == [])
    #expect(try fixture.rows()["a"]?["v"] == 2)
    #expect(try fixture.queue() == [#"update a {"v":2}"#])
    // Refused once more it is put back once more, and can be tried again.
    try fixture.push([(reason: "CONSTRAINT", row: ["v": 8, "n": 1])])
    #expect(try fixture.rows()["a"]?["v"] == 8)
    #expect(try journal(fixture) == queued)
    _ = try fixture.replica.retryRejection(queued[0])
    try fixture.push([nil])
    try fixture.pull([("a", ["v": 2, "n": 1])], cursor: "2")
    #expect(try fixture.rows()["a"] == ["id": "a", "v": 2, "n": 1])
    #expect(try fixture.queue() == [])
    #expect(try fixture.database.value("SELECT count(*) FROM _kizunasync_image") == 0)
  }

  @Test func anInsertADeleteAndATransform() throws {
    let fixture = try fixture()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "b", op: .insert, columns: ["v": 2, "none": nil]))
    _ = try fixture.apply(
      LocalWrite(
        table: "todos", pk: "a", op: .update, columns: ["v": 3], transforms: ["n": ["op": "increment", "by": 5]],
        precondition: ["v": 1]))
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .delete))
    let before = try entries(fixture)
    try fixture.push([
      (reason: "CONSTRAINT", row: nil), (reason: "PRECONDITION", row: ["v": 1, "n": 1]),
      (reason: "RLS_DENIED", row: ["v": 1, "n": 1]),
    ])
    #expect(try fixture.rows() == ["a": ["id": "a", "v": 1, "n": 1]])
    for id in try journal(fixture) { _ = try fixture.replica.retryRejection(id) }
    let after = try entries(fixture)
    #expect(after.map(\.op) == [.insert, .update, .delete])
    #expect(after.map(\.columns) == before.map(\.columns))
    #expect(after.map(\.transforms) == before.map(\.transforms))
    #expect(after.map(\.precondition) == before.map(\.precondition))
    #expect(Set(after.map(\.mutationID)).isDisjoint(with: before.map(\.mutationID)))
    #expect(try fixture.rows() == ["b": ["id": "b", "v": 2, "none": nil, "owner_id": .string(owner)]])
  }

  /// The row went away on the server: the server decides, and nothing half is shown meanwhile.
  @Test func anUpdateOfARowThatIsGoneIsSentAndNotShown() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2 WHERE id = 'a'")
    try fixture.push([(reason: "DELETE_WINS", row: nil)])
    #expect(try fixture.rows() == [:])
    _ = try fixture.replica.retryRejection(try #require(try journal(fixture).first))
    #expect(try fixture.rows() == [:])
    #expect(try fixture.queue() == [#"update a {"v":2}"#])
    try fixture.push([(reason: "DELETE_WINS", row: nil)])
    #expect(try fixture.rows() == [:])
  }

  @Test func newerWritesOfTheRowStayBelowIt() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2 WHERE id = 'a'")
    try fixture.push([(reason: "CONSTRAINT", row: ["v": 1, "n": 1])])
    try fixture.sql("UPDATE todos SET v = 9, n = 9 WHERE id = 'a'")
    _ = try fixture.replica.retryRejection(try #require(try journal(fixture).first))
    #expect(try fixture.queue() == [#"update a {"n":9,"v":9}"#, #"update a {"v":2}"#])
    #expect(try fixture.rows()["a"] == ["id": "a", "v": 2, "n": 9])
  }

  // MARK: What was not decided

  @Test func aDeadLetterKeepsItsIDsAndItsBytes() throws {
    let fixture = try fixture(["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), conflictMode: .hlc)])
    _ = try fixture.apply(
      LocalWrite(table: "todos", pk: "a", op: .update, columns: ["v": .number(JSONNumber(lexeme: "1.50")!)]))
    let taken = try fixture.replica.take(limit: 1)
    _ = try fixture.replica.deadLetter(taken, reason: "PERMANENT_TRANSPORT")
    #expect(try fixture.rows()["a"]?["v"] == 1)
    let id = taken.entries[0].mutationID
    #expect(try fixture.replica.retryRejection(id) == [id])
    func wire(_ entry: OutboxEntry) -> [UInt8] {
      var writer = JSONWriter()
      entry.write(to: &writer)
      return writer.bytes
    }
    #expect(try entries(fixture).map(wire) == taken.entries.map(wire))
    // It may be given up again, and is in the journal once.
    _ = try fixture.replica.deadLetter(fixture.replica.take(limit: 1), reason: "PERMANENT_TRANSPORT")
    #expect(try journal(fixture) == [id])
  }

  @Test func anOverwrittenStampIsMintedAnew() throws {
    let fixture = try fixture(["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), conflictMode: .hlc)])
    try fixture.sql("UPDATE todos SET v = 2 WHERE id = 'a'")
    _ = try fixture.queue()
    let old = try #require(try entries(fixture).first)
    try fixture.push([(reason: "SUPERSEDED", row: ["v": 7, "n": 1])])
    _ = try fixture.replica.retryRejection(old.mutationID)
    let new = try #require(try entries(fixture).first)
    #expect(new.hlc != nil && new.hlc != old.hlc && new.mutationID != old.mutationID)
  }

  @Test func aGroupStaysAGroup() throws {
    let fixture = try fixture()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["v": 5], group: "g"))
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "b", op: .insert, columns: ["v": 6], group: "g"))
    let taken = try fixture.replica.take(limit: 1)
    let offender = taken.entries[1].mutationID
    _ = try fixture.replica.abort(taken, offender: offender, reason: "CONSTRAINT", serverRow: nil)
    #expect(try fixture.rows().keys.sorted() == ["a"])
    let ids = try fixture.replica.retryRejection(offender)
    #expect(ids.count == 2 && Set(ids).isDisjoint(with: taken.entries.map(\.mutationID)))
    let again = try fixture.replica.take(limit: 1)
    #expect(again.entries.map(\.mutationID) == ids)
    #expect(Set(again.entries.map(\.group)).count == 1 && again.entries[0].group != nil)
    #expect(try fixture.rows()["a"]?["v"] == 5 && fixture.rows()["b"]?["v"] == 6)
  }

  // MARK: What cannot be done

  @Test func unknownAndDismissedEntriesAreNotRetried() throws {
    let fixture = try fixture()
    try fixture.sql("UPDATE todos SET v = 2 WHERE id = 'a'")
    try fixture.push([(reason: "CONSTRAINT", row: ["v": 1, "n": 1])])
    let id = try #require(try journal(fixture).first)
    #expect(try fixture.replica.retryRejection("no such id") == [])
    #expect(try fixture.replica.dismissRejection(id))
    #expect(try fixture.replica.retryRejection(id) == [])
    #expect(try fixture.queue() == [])
  }

  @Test func aRowTheTableDoesNotTakeAnyMoreChangesNothing() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))], path: folder + "/a.db",
        preparing: "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, name TEXT UNIQUE)")
      try fixture.sql("INSERT INTO todos(id, name) VALUES ('a', 'x')")
      try fixture.push([(reason: "CONSTRAINT", row: nil)])
      try fixture.sql("INSERT INTO todos(id, name) VALUES ('b', 'x')")
      let before = try fixture.queue()
      let id = try #require(try journal(fixture).first)
      let error = #expect(throws: KizunaSyncError.self) { try fixture.replica.retryRejection(id) }
      #expect(error?.code == "LOCAL_CONSTRAINT")
      #expect(try fixture.queue() == before)
      #expect(try journal(fixture) == [id])
      #expect(try fixture.database.value("SELECT count(*) FROM _kizunasync_parked") == 0)
      #expect(try fixture.rows().keys.sorted() == ["b"])
    }
  }

  // MARK: Beside a client and through it

  @Test func anotherProcessRetriesAndTheNextRunSends() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      let config = KizunaSyncClientConfig(
        tables: SyncedFile.tables, databasePath: file.path,
        remote: .init(url: "http://localhost", publishableKey: "key"))
      #expect(throws: KizunaSyncError.self) { try KizunaSyncOutbox.retry(nil, config: config) }
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("INSERT INTO todos(id, title, owner_id) VALUES ('a', 'x', 'somebody else')")
        try await engine.sync()
        let refused = try KizunaSyncOutbox.refused(databasePath: file.path)
        #expect(refused.map(\.rejection.reason) == ["RLS_DENIED"])
        #expect(refused[0].members == [refused[0].rejection.mutationId])
        #expect(refused[0].memberJson[0].contains(#""title":"x""#))

        let outcome = try KizunaSyncOutbox.retry(["no such id", refused[0].rejection.mutationId], config: config)
        #expect(outcome.unknown == ["no such id"])
        #expect(outcome.retried.map(\.mutationId) == [refused[0].rejection.mutationId])
        let queued = try KizunaSyncOutbox.queued(databasePath: file.path)
        #expect(queued.map(\.mutationId) == outcome.retried[0].queuedAs)
        #expect(queued[0].columns == ["owner_id", "title"] && queued[0].pk == "a" && !queued[0].isSent)
        #expect(try file.rows() == ["a:x"])

        // The engine knows nothing of it and sends it all the same; the server's answer is the same.
        try await engine.sync()
        #expect(try KizunaSyncOutbox.queued(databasePath: file.path) == [])
        let again = try KizunaSyncOutbox.refused(databasePath: file.path)
        #expect(again.map(\.rejection.mutationId) == outcome.retried[0].queuedAs)
        #expect(try file.rows() == [])

        #expect(try KizunaSyncOutbox.discard(nil, databasePath: file.path).discarded == outcome.retried[0].queuedAs)
        #expect(try KizunaSyncOutbox.refused(databasePath: file.path) == [])
        #expect(try KizunaSyncOutbox.refused(databasePath: file.path, includeDismissed: true).count == 1)
        #expect(try await engine.rejections(includeDismissed: false) == [])
      }
    }
  }

  @Test func theClientTellsThatSomethingIsQueued() async throws {
    let fixture = try await EngineFixture(http: ScriptedHTTP(EngineFixture.appliesAll))
    try await fixture.engine.apply(LocalWrite(table: "todos", pk: "bad", op: .insert, columns: ["id": "bad"]))
    for _ in 1...5 {
      fixture.http.faults.failNext(with: .permanent, path: "rpc/push")
      try? await fixture.engine.sync()
    }
    let dead = try #require(try await fixture.engine.rejections(includeDismissed: false).first)
    let before = fixture.seen().count
    #expect(try await fixture.engine.retryRejection(dead.mutationId) == [dead.mutationId])
    #expect(Array(fixture.seen().dropFirst(before)) == [.localChanged, .queueDepth(depth: 1)])
    try await fixture.engine.sync()
    #expect(
      fixture.http.calls.last { $0.path.hasSuffix("push") }?.json?["batch"]?["mutations"]?[0]?["mutation_id"]
        == .string(dead.mutationId))
    #expect(try await fixture.engine.outboxDepth() == 0)
    #expect(try await fixture.engine.retryRejection(dead.mutationId) == [])
    await fixture.engine.dispose()
  }

  // MARK: Stamps

  /// A write that was queued when its table wanted no stamp.
  private func unstamped(_ folder: String) throws -> ReplicaFixture {
    let path = "\(folder)/r.db"
    let before = try ReplicaFixture(["notes": KizunaSyncTableConfig(columns: ["v": .number])], path: path)
    try before.sql("INSERT INTO notes(id, v) VALUES ('1', 1)")
    _ = try before.queue()
    before.replica.close()
    return try ReplicaFixture(
      ["notes": KizunaSyncTableConfig(conflictMode: .hlc, columns: ["v": .number])], path: path)
  }

  @Test func aQueuedWriteGetsTheStampItsTableWantsNow() throws {
    try withScratchFolder { folder in
      let fixture = try unstamped(folder)
      let stamp = try #require(try fixture.replica.take(limit: 500).entries.first?.hlc)
      // From now on it does not change.
      #expect(try fixture.replica.take(limit: 500).entries.first?.hlc == stamp)
      fixture.replica.close()
    }
  }

  @Test func aDeadLetterWithoutAStampGetsOne() throws {
    try withScratchFolder { folder in
      let fixture = try unstamped(folder)
      var taken = try fixture.replica.take(limit: 500)
      taken.entries[0].hlc = nil
      _ = try fixture.replica.deadLetter(taken, reason: "PERMANENT_TRANSPORT")
      let id = taken.entries[0].mutationID
      #expect(try fixture.replica.retryRejection(id) == [id])
      #expect(try fixture.replica.take(limit: 500).entries.first?.hlc != nil)
      fixture.replica.close()
    }
  }
}
