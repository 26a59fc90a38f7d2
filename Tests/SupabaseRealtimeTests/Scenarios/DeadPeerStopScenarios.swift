import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import Testing

@testable import SupabaseRealtime

/// A stop beside a peer that is dead, over real sockets and with the product's own deadlines on a clock of the test: it
/// returns before two seconds have passed, and the descriptor is closed.
@Suite(.timeLimit(.minutes(5)))
struct DeadPeerStopScenarios {
  enum Peer: CaseIterable, Sendable {
    /// Takes the connection and reads nothing.
    case neverReads
    /// Reads the upgrade and never answers.
    case neverAnswers
    /// Opens, and never answers a join.
    case neverJoins
    /// Opens, and reads nothing any more: not the join, not the close.
    case deafOnceOpen

    var opens: Bool { self == .neverJoins || self == .deafOnceOpen }
  }

  @Test(arguments: Peer.allCases, [false, true])
  func aPeerThatNeverAnswers(peer: Peer, isHalfOpen: Bool) async throws {
    let (moments, continuation) = AsyncStream.makeStream(of: String.self)
    let server = RawServer { connection in
      switch peer {
      case .neverReads:
        continuation.yield("met")
        // Until the client is gone, which only what it sent could tell.
        while connection.isOpen { usleepABit() }
        return
      case .neverAnswers: _ = connection.readRequest()
      case .neverJoins, .deafOnceOpen: connection.acceptUpgrade()
      }
      continuation.yield("met")
      if peer == .deafOnceOpen { while connection.isOpen { usleepABit() } } else { connection.drain() }
    }
    let proxy = try FaultProxy(to: server.port)
    let clock = VirtualClock()
    let connection = RealtimeConnection(
      RealtimeConfiguration(url: try ServerURL("http://127.0.0.1:\(proxy.port)"), apiKey: "k"),
      transport: LibwebsocketsTransport(clock: clock), clock: clock)
    let rings = Locked(0)
    let subscription = try connection.subscribe(topics: ["a"]) { _ in rings.withLock { $0 += 1 } }
    connection.start()
    var met = moments.makeAsyncIterator()
    _ = await met.next()
    if peer.opens {
      for await status in connection.statusUpdates where status.topics.first?.state == .joining { break }
    }
    // From here on nothing that is sent in either direction arrives.
    if isHalfOpen { proxy.rules = .vanished }

    let began = clock.now
    let isStopped = Locked(false)
    let stop = Task {
      await connection.stop()
      isStopped.withLock { $0 = true }
    }
    // Time passes only while the stop waits for it.
    while !isStopped.withLock({ $0 }), clock.now < began + .seconds(10) {
      if await clock.settle(patience: 0.2, until: { isStopped.withLock { $0 } }) { break }
      guard let next = clock.pendingDeadlines.first else { continue }
      await clock.advance(to: next)
    }
    await stop.value
    #expect(clock.now <= began + .seconds(2))
    #expect(connection.status.state == .stopped)
    #expect(openSockets(to: proxy.port) == 0)
    await clock.advance(by: .seconds(600))
    #expect(rings.withLock { $0 } == 0)
    #expect(clock.pendingDeadlines.isEmpty)
    #expect(openSockets(to: proxy.port) == 0)
    subscription.cancel()
    await proxy.stop()
  }
}
