import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Servers, or proxies before them, that answer in ways which never lead anywhere.
@Suite struct FaultyServerTests {
  /// Answers every pull with what `answer` says to its cursor and to how many came before.
  private func engine(
    _ config: KizunaSyncClientConfig = EngineFixture.config(),
    _ answer: @escaping @Sendable (_ cursor: String, _ count: Int) -> HTTPResponse
  ) async throws -> EngineFixture {
    let count = Locked(0)
    return try await EngineFixture(
      config,
      http: ScriptedHTTP { request in
        guard request.path.hasSuffix("pull") else { return try await EngineFixture.appliesAll(request) }
        return answer(request.json?["cursor"]?.stringValue ?? "", Self.tick(count))
      })
  }

  private static func tick(_ count: Locked<Int>) -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }

  private func failure(_ fixture: EngineFixture) async -> String {
    let error = await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
    #expect(error?.code == "REMOTE")
    return error?.message ?? ""
  }

  @Test func aCheckpointThatAlwaysExpiresEndsTheRun() async throws {
    let fixture = try await engine { cursor, _ in
      EngineFixture.page(cursor: cursor, signal: "CHECKPOINT_EXPIRED")
    }
    try await fixture.engine.seedCheckpoint("7")
    #expect(await failure(fixture).contains("CHECKPOINT_EXPIRED"))
    #expect(fixture.http.calls.map { $0.json?["cursor"] } == ["7", "0"])
    #expect(fixture.seen() == [.checkpointExpired])
    #expect(await failure(fixture).contains("CHECKPOINT_EXPIRED"))
    #expect(fixture.http.calls.count == 4)
    await fixture.engine.dispose()
  }

  @Test func moreThatNeverComesEndsTheRun() async throws {
    let fixture = try await engine { cursor, _ in EngineFixture.page(cursor: cursor, hasMore: true) }
    #expect(await failure(fixture).contains("has_more"))
    #expect(fixture.http.calls.count == TransferProgress.patience)
    await fixture.engine.dispose()
  }

  /// Nor is what came of it kept: it would grow with every run.
  @Test func aCircleOfCursorsEndsTheRun() async throws {
    let fixture = try await engine { _, count in
      EngineFixture.page(
        cursor: "0:\(count % 5)", rows: [EngineFixture.row("a", ["v": 1])], hasMore: true)
    }
    #expect(await failure(fixture).contains("comes back to a cursor"))
    #expect(fixture.http.calls.count < 25)
    #expect(
      try await fixture.engine.withReplica { try $0.database.value("SELECT count(*) FROM _kizunasync_pages") } == 0)
    await fixture.engine.dispose()
  }

  @Test(arguments: [
    "", "abc", "06", "1:2:3", "9~9", "9~7.5", "9~", "+6", " 6", "9223372036854775808",
    String(repeating: "7", count: 1 << 20),
  ])
  func aCursorThatNoServerCanReadIsNotKept(cursor: String) async throws {
    for hasMore in [false, true] {
      let fixture = try await engine { _, count in
        EngineFixture.page(
          cursor: count == 1 ? cursor : "8", rows: [EngineFixture.row("a", ["v": 1])], hasMore: count == 1 && hasMore)
      }
      try await fixture.engine.seedCheckpoint("7")
      let error = await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(error?.code == "JSON")
      #expect((error?.message.utf8.count ?? 0) < 200)
      #expect(try await fixture.engine.checkpoint().cursor == "7")
      #expect(try await fixture.engine.read { try $0.rows("todos").isEmpty })
      try await fixture.engine.sync()
      #expect(fixture.http.calls.last?.json?["cursor"] == "7")
      #expect(try await fixture.engine.checkpoint().cursor == "8")
      await fixture.engine.dispose()
    }
  }

  /// Earlier releases kept such cursors.
  @Test func aCursorThatWasKeptIsForgotten() async throws {
    let fixture = try await engine { _, _ in EngineFixture.page(cursor: "9") }
    try await fixture.engine.withReplica { try $0.database.setMeta(.cursor, .text("abc")) }
    try await fixture.engine.sync()
    #expect(fixture.http.calls.map { $0.json?["cursor"] } == ["0"])
    #expect(try await fixture.engine.checkpoint().cursor == "9")
    await fixture.engine.dispose()
  }

  // MARK: Reading one table again

  /// Several pages of one table again, behind a pull that is in step.
  private func rereading(
    _ answer: @escaping @Sendable (_ cursor: String, _ limit: Int?, _ count: Int) throws -> HTTPResponse
  ) async throws -> EngineFixture {
    let count = Locked(0)
    let fixture = try await EngineFixture(
      http: ScriptedHTTP { request in
        guard request.json?["client_id"] == nil || request.json?["client_id"]?.isNull == true else {
          return EngineFixture.page(cursor: "9")
        }
        return try answer(
          request.json?["cursor"]?.stringValue ?? "", request.json?["limit"]?.intValue,
          Self.tick(count))
      })
    try await fixture.engine.sync()
    try await fixture.engine.withReplica { replica in
      try replica.database.transaction { try replica.changeRereads { $0.ask("todos", keep: .nothing) } }
    }
    return fixture
  }

  @Test func readingATableAgainEndsToo() async throws {
    for answer in [
      EngineFixture.page(cursor: "0", hasMore: true), EngineFixture.page(cursor: "0:1", hasMore: true),
      EngineFixture.page(cursor: "0", signal: "CHECKPOINT_EXPIRED"),
    ] {
      let fixture = try await rereading { _, _, _ in answer }
      #expect(await failure(fixture).hasPrefix("kizunasync.pull says"))
      #expect(fixture.http.calls.count < 12)
      await fixture.engine.dispose()
    }
  }

  /// The limit grows with each page that fits. Starting over with each that does not, it would never get past this one.
  @Test func aLargePageInTheMiddleOfATableIsPassed() async throws {
    let fixture = try await rereading { cursor, limit, count in
      if count > 100 { throw HTTPError(.other, "for ever") }
      if cursor == "0:1", limit ?? 500 > 250 { throw HTTPError(.tooLarge, "over 64 MiB") }
      let next = ["0": "0:1", "0:1": "0:2"][cursor] ?? "9"
      return EngineFixture.page(
        cursor: next, rows: [EngineFixture.row("k\(next)", ["v": 1])], hasMore: next != "9")
    }
    try await fixture.engine.sync()
    #expect(try await fixture.engine.read { try $0.rows("todos").count } == 3)
    await fixture.engine.dispose()
  }

  // MARK: 413 to everything

  @Test func aProxyThatFindsEverythingTooLargeCostsNoWrite() async throws {
    let isBroken = Locked(true)
    let fixture = try await EngineFixture(
      http: ScriptedHTTP { request in
        if isBroken.withLock({ $0 }) { return HTTPResponse(status: 413) }
        return try await EngineFixture.appliesAll(request)
      })
    #expect(await failure(fixture).contains("kizunasync.pull failed: HTTP 413, though a request for a single row"))
    for key in ["a", "b"] {
      try await fixture.engine.apply(LocalWrite(table: "todos", pk: key, op: .insert, columns: ["id": .string(key)]))
    }
    for _ in 0..<8 {
      let sentence = await failure(fixture)
      #expect(sentence.contains("kizunasync.push failed: HTTP 413, though a request of "), "\(sentence)")
    }
    #expect(try await fixture.engine.outboxDepth() == 2)
    #expect(try await fixture.engine.rejections(includeDismissed: true).isEmpty)
    isBroken.withLock { $0 = false }
    try await fixture.engine.sync()
    #expect(try await fixture.engine.outboxDepth() == 0)
    await fixture.engine.dispose()
  }
}
