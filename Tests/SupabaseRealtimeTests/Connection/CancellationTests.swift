import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import Testing

@testable import SupabaseRealtime

/// D32: a subscription is cancelled, or the connection stopped, between any two steps of a life that has everything in it:
/// refused upgrades, refused tokens, refused joins, broadcasts, cuts. Nothing is left of it, and nothing is heard.
@Suite struct CancellationTests {
  private static func story() throws -> ConnectionFixture {
    try ConnectionFixture(
      [
        .refuse(status: 503), .fail(RealtimeTransportFailure(.unreachable, "no")), .accept, .expect(.join("a")),
        .reply(status: "error", response: ["reason": "InvalidJWTToken: Token has expired 9 seconds ago"]),
        .expect(.join("a")), .reply(status: "error", response: ["reason": "MusterJoinError: no"]), .expect(.join("a")),
        .reply(), .broadcast(topic: "a"), .wait(.seconds(40)), .cut, .accept, .expect(.join("a")), .reply(),
        .close(code: 1012),
      ],
      credentials: ScriptedCredentials(.failure, .token("old"), .token("new")))
  }

  private enum Means: CaseIterable { case cancel, stop, both }

  /// Plays the story and interferes when the line of that number is logged, in the middle of the step it belongs to.
  /// - Returns: how many lines there were.
  private func play(_ means: Means?, at line: Int) async throws -> Int {
    let fixture = try Self.story()
    let subscription = try fixture.listen("a")
    let (stops, continuation) = AsyncStream.makeStream(of: Void.self)
    let ringsThen = Locked<Int?>(nil)
    fixture.onLine { [connection = fixture.connection] number in
      guard number == line, let means else { return }
      if means != .stop { subscription.cancel() }
      ringsThen.withLock { $0 = fixture.rings.count }
      guard means != .cancel else { return continuation.finish() }
      Task {
        await connection.stop()
        // From now on nothing may be heard.
        ringsThen.withLock { $0 = fixture.rings.count }
        continuation.finish()
      }
    }
    fixture.connection.start()
    await fixture.clock.advance(by: .seconds(120))
    guard let means, ringsThen.withLock({ $0 }) != nil else {
      subscription.cancel()
      await fixture.connection.stop()
      return fixture.logged.count
    }
    for await _ in stops {}
    let rings = ringsThen.withLock { $0 }
    await fixture.clock.advance(by: .seconds(600))
    let status = fixture.connection.status
    #expect(fixture.transport.liveConnections == 0, "\(means) at \(line)")
    #expect(fixture.clock.pendingDeadlines.isEmpty, "\(means) at \(line)")
    #expect(fixture.rings.count == rings, "\(means) at \(line)")
    #expect(status.state == (means == .cancel ? .disconnected : .stopped), "\(means) at \(line)")
    #expect(status.topics.isEmpty == (means != .stop), "\(means) at \(line)")
    #expect(await fixture.connection.heldEntries == (means == .stop ? 1 : 0), "\(means) at \(line)")
    subscription.cancel()
    return fixture.logged.count
  }

  @Test func betweenAnyTwoSteps() async throws {
    let lines = try await play(nil, at: -1)
    #expect(lines > 20)
    for line in 1...lines {
      for means in Means.allCases { _ = try await play(means, at: line) }
    }
  }

  /// The session owner's answer is awaited when the stop comes: the question is cancelled, and its answer is not used.
  @Test func whileTheSessionOwnerIsAsked() async throws {
    let clock = VirtualClock()
    let fixture = try ConnectionFixture(credentials: ScriptedCredentials(.later(.seconds(3), "late"), clock: clock))
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.settle()
    await fixture.connection.stop()
    #expect(clock.pendingDeadlines.isEmpty)
    fixture.connection.start()
    await fixture.clock.settle()
    await clock.advance(by: .seconds(3))
    await fixture.clock.settle()
    #expect(fixture.connection.status.isReady)
    #expect(fixture.transport.sent("phx_join").count == 1)
    subscription.cancel()
    await fixture.connection.stop()
  }
}
