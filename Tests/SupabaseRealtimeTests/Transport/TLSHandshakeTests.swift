import HostKit
import Testing

@testable import SupabaseRealtime

/// A peer that goes quiet inside a TLS handshake.
@Suite(.timeLimit(.minutes(1))) struct TLSHandshakeTests {
  /// D31: whoever leaves then need not wait for the peer, and the peer sees it.
  @Test func closingInsideTheHandshakeEndsAtOnce() async throws {
    let (moments, continuation) = AsyncStream.makeStream(of: String.self)
    let server = RawServer { peer in
      // The client's greeting, and never a word back.
      let greeting = peer.read()
      continuation.yield(greeting.first == 0x16 ? "greeted" : "something else")
      continuation.yield(peer.read().isEmpty ? "gone" : "more")
    }
    let probe = TransportProbe(server.url.replacing("ws://", with: "wss://"))
    var iterator = moments.makeAsyncIterator()
    #expect(await iterator.next() == "greeted")
    probe.close()
    #expect(await probe.rest() == [.closed(code: 1000, reason: "")])
    #expect(await iterator.next() == "gone")
  }

  @Test func aPeerThatHangsUpInsideTheHandshakeIsAFailureOfTLS() async throws {
    let server = RawServer { peer in _ = peer.read() }
    let probe = TransportProbe(server.url.replacing("ws://", with: "wss://"))
    let events = await probe.rest()
    #expect(events.count == 1)
    guard case .failed(let failure) = events.first else {
      Issue.record("\(events)")
      return
    }
    #expect(failure.kind == .tls || failure.kind == .connectionLost)
    #expect(failure.message.contains("127.0.0.1"))
  }
}
