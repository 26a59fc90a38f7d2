import Dispatch
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import SupabaseRealtime

/// A resolver that hangs: nobody waits for it, and it holds one thread.
@Suite(.timeLimit(.minutes(5))) struct NameLookupTests {
  /// Answers when it is told to.
  private final class HangingResolver: Sendable {
    let asked: AsyncStream<String>
    private let ask: AsyncStream<String>.Continuation
    private let gate = DispatchSemaphore(value: 0)

    init() { (asked, ask) = AsyncStream.makeStream(of: String.self) }

    func addresses(of host: String) -> AddressLookups.Addresses {
      ask.yield(host)
      gate.wait()
      return .success([AddressResolver.Address(text: "127.0.0.1", isIPv6: false)])
    }

    func answer() { gate.signal() }
  }

  private let resolver = HangingResolver()
  private let clock = VirtualClock()

  private func probe(_ host: String, port: UInt16 = 1) -> TransportProbe {
    let transport = LibwebsocketsTransport(clock: clock) { [resolver] in resolver.addresses(of: $0) }
    return TransportProbe(
      RealtimeTransportRequest(
        url: "ws://\(host):\(port)/", handshakeTimeout: .seconds(15), closeTimeout: .milliseconds(100)), over: transport
    )
  }

  @Test func theDeadlineOfTheHandshakeHolds() async {
    var asked = resolver.asked.makeAsyncIterator()
    let first = probe("hangs.local")
    #expect(await asked.next() == "hangs.local")
    await clock.advance(by: .seconds(15))
    #expect(
      await first.rest() == [
        .failed(
          RealtimeTransportFailure(.timeout, "The host name of hangs.local:1 was not resolved within 15 s."))
      ])

    // Attempts that follow wait for the same answer, and for another name somebody else is asked.
    let second = probe("hangs.local")
    let other = probe("other.local")
    #expect(await asked.next() == "other.local")
    await clock.advance(by: .seconds(15))
    #expect(await second.rest().count == 1)
    #expect(await other.rest().count == 1)
    resolver.answer()
    resolver.answer()
  }

  @Test func whoLeavesMeanwhileNeedNotWait() async {
    var asked = resolver.asked.makeAsyncIterator()
    let probe = probe("left.local")
    _ = await asked.next()
    probe.close()
    #expect(await probe.rest() == [.closed(code: 1000, reason: "")])
    resolver.answer()
  }

  /// The answer comes after the first attempt was given up, in time for the second.
  @Test func aLateAnswerServesTheAttemptThatWaits() async {
    var asked = resolver.asked.makeAsyncIterator()
    let server = RawServer { peer in
      peer.acceptUpgrade()
      peer.drain()
    }
    let first = probe("late.local", port: server.port)
    _ = await asked.next()
    first.close()
    _ = await first.rest()
    let second = probe("late.local", port: server.port)
    // It waits from now on: what the loop is given is done in order.
    await withCheckedContinuation { done in
      LwsLoop.shared.run { LwsLoop.shared.run { done.resume() } }
    }
    resolver.answer()
    #expect(await second.next() == .opened)
    second.close()
    _ = await second.rest()
  }
}
