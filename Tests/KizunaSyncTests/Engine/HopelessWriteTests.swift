import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Writes that no server takes, whatever is tried: they must not keep the others from it, and must say why.
@Suite struct HopelessWriteTests {
  private static let secret = "a-row-value"

  /// A server that takes so many bytes in a request.
  private func limited(to bytes: Int) -> ScriptedHTTP {
    ScriptedHTTP { request in
      if (request.body?.count ?? 0) > bytes { return HTTPResponse(status: 413, body: Array("too large".utf8)) }
      return try await EngineFixture.appliesAll(request)
    }
  }

  private func write(_ fixture: EngineFixture, _ key: String, _ size: Int) async throws {
    try await fixture.engine.apply(
      LocalWrite(
        table: "todos", pk: key, op: .insert,
        columns: ["id": .string(key), "title": .string(String(repeating: "x", count: size))]))
  }

  /// Wherever it stands in the queue, one run delivers the rest, and what is too large goes out only a few times.
  @Test(arguments: [0, 7, 300, 599])
  func aWriteThatIsTooLargeIsGivenUpInTheSameRun(position: Int) async throws {
    let fixture = try await EngineFixture(http: limited(to: 1 << 20))
    for index in 0..<600 { try await write(fixture, "k\(index)", index == position ? 2 << 20 : 10) }
    try await fixture.engine.sync()
    #expect(try await fixture.engine.outboxDepth() == 0)
    let refused = try await fixture.engine.rejections(includeDismissed: false)
    #expect(refused.map(\.pk) == ["k\(position)"] && refused.map(\.kind) == ["DEAD_LETTER"])
    let reason = try #require(refused.first?.reason)
    #expect(reason.hasPrefix("TOO_LARGE: the write of todos makes a request of 20"), "\(reason)")
    #expect(fixture.http.calls.filter { ($0.body?.count ?? 0) > 1 << 20 }.count <= 2)
    #expect(fixture.http.calls.count < 20)
    await fixture.engine.dispose()
  }

  @Test func manyLargeWritesGoOutInRequestsThatFit() async throws {
    let fixture = try await EngineFixture(http: limited(to: 1 << 20))
    for index in 0..<40 { try await write(fixture, "k\(index)", 200_000) }
    try await fixture.engine.sync()
    #expect(try await fixture.engine.outboxDepth() == 0)
    #expect(try await fixture.engine.rejections(includeDismissed: false).isEmpty)
    #expect(fixture.http.calls.filter { ($0.body?.count ?? 0) > 1 << 20 }.count <= 4)
    await fixture.engine.dispose()
  }

  private func group(_ fixture: EngineFixture, of count: Int, size: Int = 10) async throws {
    for index in 0..<count { try await write(fixture, "g\(index)", size) }
    try await fixture.engine.withReplica { try $0.database.run("UPDATE _kizunasync_outbox SET grp = 'g'") }
    try await write(fixture, "after", 10)
  }

  @Test func aGroupWithTooManyWritesIsRefusedAtOnceWithTheLimit() async throws {
    let http = ScriptedHTTP { request in
      let count = request.json?["batch"]?["mutations"]?.arrayValue?.count ?? 0
      if count > 500 { return .json(["code": "KZP02", "message": .string(Self.secret)], status: 400) }
      return try await EngineFixture.appliesAll(request)
    }
    let fixture = try await EngineFixture(http: http)
    try await group(fixture, of: 600)
    try await fixture.engine.sync()
    #expect(try await fixture.engine.outboxDepth() == 0)
    let reason = try #require(try await fixture.engine.rejections(includeDismissed: false).first?.reason)
    #expect(reason == DeadLetterReason.tooManyWrites(600).text)
    #expect(reason.contains("600 writes") && reason.contains("500"))
    #expect(fixture.http.calls.filter { $0.path.hasSuffix("push") }.count == 2)
    await fixture.engine.dispose()
  }

  @Test func aGroupThatIsTooLargeIsRefusedAtOnceWithItsSize() async throws {
    let fixture = try await EngineFixture(http: limited(to: 30_000))
    try await group(fixture, of: 30, size: 5_000)
    try await fixture.engine.sync()
    #expect(try await fixture.engine.outboxDepth() == 0)
    let reason = try #require(try await fixture.engine.rejections(includeDismissed: false).first?.reason)
    #expect(reason.hasPrefix("TOO_LARGE: the all-or-nothing group of 30 writes, the first of todos"))
    await fixture.engine.dispose()
  }

  // MARK: What a server says

  /// Nothing of its text is thrown, kept for `status` or journalled, whatever becomes of the write.
  @Test(arguments: [("22P02", 400), ("23505", 409), ("42501", 403), ("XX000", 500), (secret, 400), ("KZP03", 400)])
  func theServersTextIsKeptNowhere(code: String, status: Int) async throws {
    let http = ScriptedHTTP { request in
      if request.path.hasSuffix("pull") { return EngineFixture.page(cursor: "1") }
      return .json(
        ["code": .string(code), "message": .string("bad \(Self.secret)"), "details": .string(Self.secret)],
        status: status)
    }
    let fixture = try await EngineFixture(http: http)
    try await write(fixture, "k", 10)
    for _ in 0..<5 {
      do { try await fixture.engine.sync() } catch { #expect(!"\(error)".contains(Self.secret)) }
      let kept = try await fixture.engine.withReplica { replica in
        try replica.database.map("SELECT error FROM _kizunasync_outbox", []) { $0.optionalString(0) ?? "" }
          + replica.database.map("SELECT reason || members FROM _kizunasync_rejections", []) { $0.string(0) }
          + replica.database.map("SELECT value FROM _kizunasync_meta", []) { "\($0.value(0))" }
      }
      #expect(!kept.contains { $0.contains(Self.secret) }, "\(kept)")
    }
    #expect(!fixture.seen().contains { "\($0)".contains(Self.secret) })
    await fixture.engine.dispose()
  }

  @Test func aTokenThatNoHeaderCanCarryIsRefusedByName() async throws {
    let fixture = try await EngineFixture()
    for token in ["a\r\nb: c", "a b", "a\nb"] {
      let error = await #expect(throws: KizunaSyncError.self) { try await fixture.engine.setAccessToken(token) }
      #expect(error?.code == "CONFIG_INVALID" && error?.message.contains("access token") == true)
    }
    await fixture.engine.dispose()
  }
}
