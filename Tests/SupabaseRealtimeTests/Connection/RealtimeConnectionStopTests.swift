import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import SupabaseRealtime
import Testing

/// D03, D18, D20, D31: ends, and calls from everywhere at once.
@Suite struct RealtimeConnectionStopTests {
  @Test func stopEndsEverything() async throws {
    let (fixture, subscription) = try await ConnectionFixture.joined("a")
    await fixture.connection.stop()
    let rings = fixture.rings.count
    #expect(fixture.transport.liveConnections == 0)
    #expect(fixture.clock.pendingDeadlines.isEmpty)
    #expect(fixture.connection.status.state == .stopped)
    fixture.transport.broadcast("a")
    fixture.connection.hint(.manual)
    await fixture.clock.advance(by: .seconds(3_600))
    #expect(fixture.rings.count == rings)
    #expect(fixture.transport.requests.count == 1)
    subscription.cancel()
  }

  @Test func stopComesBackWithinTwoSecondsFromADeadPeer() async throws {
    let (fixture, subscription) = try await ConnectionFixture.joined("a")
    fixture.transport.setAnswersCloses(false)
    let start = fixture.clock.now
    let stopped = Locked<UInt64?>(nil)
    let task = Task {
      await fixture.connection.stop()
      stopped.withLock { $0 = fixture.clock.now }
    }
    #expect(await fixture.clock.advance(atMost: .seconds(10)) { stopped.withLock { $0 } != nil })
    let end = try #require(stopped.withLock { $0 })
    #expect(end - start <= .seconds(2))
    #expect(fixture.clock.pendingDeadlines.isEmpty)
    await task.value
    subscription.cancel()
  }

  @Test func stopAtEveryStepOfConnecting() async throws {
    for script: RealtimeScript in [
      [.stall], [.refuse(status: 503)], [.fail(RealtimeTransportFailure(.unreachable, "no"))],
      [.accept, .wait(.seconds(60))],
    ] {
      let fixture = try ConnectionFixture(script, afterwards: .silence)
      let subscription = try fixture.listen("a")
      fixture.connection.start()
      await fixture.clock.settle()
      await fixture.connection.stop()
      #expect(fixture.transport.liveConnections == 0)
      #expect(fixture.connection.status.state == .stopped)
      await fixture.clock.advance(by: .seconds(600))
      #expect(fixture.transport.requests.count == 1)
      #expect(fixture.rings.isEmpty)
      subscription.cancel()
    }
  }

  @Test func aStopRightAfterAStartWins() async throws {
    let fixture = try ConnectionFixture()
    let subscription = try fixture.listen("a")
    for _ in 0..<20 {
      fixture.connection.start()
      await fixture.connection.stop()
      await fixture.clock.settle()
      #expect(fixture.connection.status.state == .stopped)
    }
    fixture.connection.start()
    await fixture.clock.advance(by: .seconds(1))
    #expect(fixture.connection.status.isReady)
    #expect(fixture.transport.mostConnectionsAtOnce == 1)
    subscription.cancel()
  }

  @Test func stoppingTwiceAndUnstarted() async throws {
    let fixture = try ConnectionFixture()
    await fixture.connection.stop()
    await fixture.connection.stop()
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.settle()
    async let one: Void = fixture.connection.stop()
    async let two: Void = fixture.connection.stop()
    _ = await (one, two)
    #expect(fixture.transport.liveConnections == 0)
    subscription.cancel()
  }

  /// D18: one transport and one join a topic, however many tasks ask at once.
  @Test func manyTasksAtOnce() async throws {
    let fixture = try ConnectionFixture()
    let connection = fixture.connection
    let subscriptions = try await withThrowingTaskGroup(of: RealtimeSubscription.self) { group in
      for number in 0..<100 {
        group.addTask {
          connection.start()
          return try connection.subscribe(topics: ["t\(number % 5)"]) { _ in }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    await fixture.clock.settle()
    #expect(connection.status.isReady)
    #expect(fixture.transport.requests.count == 1)
    #expect(fixture.transport.sent("phx_join").map(\.topic).sorted() == (0..<5).map { "realtime:t\($0)" })
    #expect(connection.status.topics.map(\.subscribers) == [20, 20, 20, 20, 20])
    for subscription in subscriptions { subscription.cancel() }
    await fixture.clock.settle()
    #expect(fixture.transport.sent("phx_leave").count == 5)
  }

  /// D20: releasing the connection closes its socket and disarms its timers.
  @Test func releasingTheConnectionClosesIt() async throws {
    let clock = VirtualClock()
    let transport = ScriptedTransport(clock: clock)
    weak var released: RealtimeConnection?
    do {
      let connection = RealtimeConnection(
        RealtimeConfiguration(url: try ServerURL("http://127.0.0.1:9"), apiKey: "k"), transport: transport, clock: clock
      )
      released = connection
      let subscription = try connection.subscribe(topics: ["a"]) { _ in }
      connection.start()
      await clock.settle()
      #expect(transport.liveConnections == 1)
      withExtendedLifetime((connection, subscription)) {}
    }
    await clock.settle { released == nil && transport.liveConnections == 0 }
    #expect(released == nil)
    #expect(transport.liveConnections == 0)
    #expect(clock.pendingDeadlines.isEmpty)
  }
}
