import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Rows that plain SQL writes before anybody has signed in.
@Suite struct AwaitedOwnerTests {
  private static let columns = [
    "todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["title": .text])
  ]

  @Test func theyGetTheOwnerWhoSignsIn() async throws {
    try await withScratchFolder { folder in
      let path = "\(folder)/r.db"
      let config = EngineFixture.config(Self.columns, path: path, token: nil)
      var fixture = try await EngineFixture(config, http: ScriptedHTTP(EngineFixture.appliesAll))
      let sql = try PlainDatabase(path)
      try sql.run("INSERT INTO todos(id, title) VALUES ('early', 'x')")
      // Neither a run without a token nor a restart takes them up.
      let error = await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(error?.message.contains("AUTH_SESSION_MISSING") == true)
      await fixture.engine.dispose()
      #expect(try KizunaSyncReplicaStatus.read(databasePath: path).outboxDepth == 1)
      fixture = try await EngineFixture(config, http: ScriptedHTTP(EngineFixture.appliesAll))
      #expect(fixture.seen() == [])
      try await fixture.engine.setAccessToken(TestToken.user(owner))
      #expect(fixture.seen() == [.localChanged, .queueDepth(depth: 1)])
      try await fixture.engine.sync()
      let mutations = fixture.http.calls.first?.json?["batch"]?["mutations"]?.arrayValue ?? []
      #expect(mutations.map { $0["columns"] } == [["title": "x", "owner_id": .string(owner)]])
      await fixture.engine.dispose()
      sql.close()
    }
  }

  @Test func aTokenWithoutASubjectDoesNotHoldThemForEver() async throws {
    try await withScratchFolder { folder in
      let path = "\(folder)/r.db"
      let fixture = try await EngineFixture(
        EngineFixture.config(Self.columns, path: path, token: nil), http: ScriptedHTTP(EngineFixture.appliesAll))
      let sql = try PlainDatabase(path)
      try sql.run("INSERT INTO todos(id, title) VALUES ('early', 'x')")
      sql.close()
      try await fixture.engine.setAccessToken("opaque")
      #expect(try await fixture.engine.outboxDepth() == 1)
      await fixture.engine.dispose()
    }
  }

  @Test func aRefusedInsertIsRetriedWithTheOwner() throws {
    let fixture = try ReplicaFixture(Self.columns)
    _ = try fixture.apply(
      LocalWrite(table: "todos", pk: "1", op: .insert, columns: ["title": "x", "owner_id": nil]))
    try fixture.database.run(#"UPDATE _kizunasync_outbox SET columns = '{"title":"x"}'"#)
    try fixture.push([(reason: "RLS_DENIED", row: nil)])
    let id = try #require(try fixture.replica.rejections(includeDismissed: false).first?.mutationId)
    _ = try fixture.replica.retryRejection(id)
    #expect(try fixture.queue() == [#"insert 1 {"owner_id":"\#(owner)","title":"x"}"#])
  }
}
