import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import SupabaseRealtime
import Testing

@Suite struct ScriptedTransportTests {
  private let clock = VirtualClock(now: .seconds(100))

  private func connection(_ transport: ScriptedTransport) throws -> (RealtimeConnection, RealtimeSubscription) {
    let connection = RealtimeConnection(
      RealtimeConfiguration(url: try ServerURL("http://127.0.0.1:9"), apiKey: "k"), transport: transport, clock: clock,
      jitter: { 1 })
    let subscription = try connection.subscribe(topics: ["todos"]) { _ in }
    connection.start()
    return (connection, subscription)
  }

  @Test func aFrameThatIsNotAsExpectedIsShownWithItsDifferences() async throws {
    let transport = ScriptedTransport(
      clock: clock,
      [
        .wait(.seconds(2)), .accept,
        .expect(.join("notes", ["config": ["private": false], "access_token": "x"])), .reply(),
      ])
    let (connection, subscription) = try connection(transport)
    await clock.advance(by: .seconds(3))
    let problem = try #require(transport.problems.first)
    #expect(transport.problems.count == 1)
    #expect(problem.contains("at 102.0 s on connection 1"))
    #expect(problem.contains("topic: expected realtime:notes, sent realtime:todos"))
    #expect(problem.contains("payload.config.private: expected false, sent true"))
    #expect(problem.contains(#"payload.access_token: expected "x", sent nothing"#))
    // The script stops there.
    #expect(transport.remainingSteps == 1)
    await connection.stop()
    subscription.cancel()
  }

  @Test func aScriptThatIsNotAtItsEndSaysWhatItWaitsFor() async throws {
    let transport = ScriptedTransport(
      clock: clock, [.accept, .expect(.join("todos")), .reply(), .expect(.leave("todos")), .reply()])
    let (connection, subscription) = try connection(transport)
    await clock.advance(by: .seconds(30))
    #expect(transport.problems == [])
    let complaint = try #require(transport.complaints().first)
    #expect(complaint.contains("at 130.0 s: 2 steps are left"))
    #expect(complaint.contains("expected phx_leave to realtime:todos"))
    #expect(complaint.contains("sent     heartbeat to phoenix {}, at 1"))
    subscription.cancel()
    await clock.advance(by: .seconds(1))
    #expect(transport.complaints() == [])
    await connection.stop()
  }

  @Test func aScriptPlaysInOrderAndInTime() async throws {
    let transport = ScriptedTransport(
      clock: clock,
      [
        .refuse(status: 503), .accept, .expect(.join("todos")), .wait(.seconds(4)), .reply(),
        .expect(.heartbeat), .reply(response: [:]), .cut, .accept, .expect(.join("todos")),
        .reply(), .close(code: 1012), .stall, .expectClose,
      ], afterwards: .silence)
    let (connection, subscription) = try connection(transport)
    await clock.advance(by: .seconds(1))
    #expect(connection.status.state == .open)
    #expect(!connection.status.isReady)
    await clock.advance(by: .seconds(4))
    #expect(connection.status.isReady)
    await clock.advance(by: .seconds(120))
    #expect(transport.problems == [])
    #expect(transport.remainingSteps == 0)
    #expect(transport.requests.count >= 4)
    #expect(transport.mostConnectionsAtOnce == 1)
    await connection.stop()
    subscription.cancel()
  }

  /// A client of one's own that joins twice is found out, whatever comes next.
  @Test func aSecondJoinIsAComplaint() async throws {
    let join: [RealtimeScript.Step] = [.accept, .expect(.join("todos")), .reply(), .wait(.seconds(1))]
    let transport = ScriptedTransport(
      clock: clock, RealtimeScript(join + [.cut] + join), afterwards: .complain)
    func connect(joins: Int) async -> any RealtimeTransportConnection {
      let client = transport.connect(RealtimeTransportRequest(url: "wss://example.com/?vsn=2.0.0")) { _ in }
      await clock.settle()
      for ref in 0..<joins { client.send(.text(#"["\#(ref)","\#(ref)","realtime:todos","phx_join",{}]"#)) }
      await clock.advance(by: .seconds(2))
      return client
    }
    _ = await connect(joins: 2)
    #expect(transport.remainingSteps == 4)
    let second = await connect(joins: 1)
    #expect(transport.remainingSteps == 0)
    let surplus = transport.complaints()
    #expect(surplus.count == 1)
    #expect(surplus.first?.contains("expected nothing") == true && surplus.first?.contains("on connection 1") == true)
    // Nothing is expected after the script either.
    second.send(.text(#"["9","9","realtime:todos","phx_join",{}]"#))
    second.send(.text(#"[null,"10","phoenix","heartbeat",{}]"#))
    await clock.settle()
    #expect(transport.complaints().count == 2)
    #expect(transport.complaints().last?.contains("on connection 2") == true)
    second.close(code: 1000, reason: "")
    await clock.settle()
    _ = await connect(joins: 0)
    #expect(transport.complaints().count == 3)
    #expect(transport.complaints().last?.contains("number 3") == true)
  }

  @Test func anUnreachableNetworkFailsEachAttempt() async throws {
    let transport = ScriptedTransport(clock: clock)
    transport.setReachable(false)
    let (connection, subscription) = try connection(transport)
    await clock.advance(by: .seconds(120))
    #expect(transport.requests.count > 5)
    #expect(transport.sent.isEmpty)
    transport.setReachable(true)
    await clock.advance(by: .seconds(30))
    #expect(connection.status.isReady)
    await connection.stop()
    subscription.cancel()
  }

  @Test func whatIsNoFrameReachesTheClientAsItIs() async throws {
    let transport = ScriptedTransport(
      clock: clock,
      [
        .accept, .expect(.join("todos")), .reply(), .sendRaw(.text("{")), .sendRaw(.binary([9, 9])),
        .tooLarge(bytes: 2_000_000),
      ])
    let (connection, subscription) = try connection(transport)
    await clock.settle()
    #expect(connection.status.isReady)
    #expect(connection.status.counters.framesUndecodable == 2)
    #expect(connection.status.counters.framesOversized == 1)
    await connection.stop()
    subscription.cancel()
  }
}
