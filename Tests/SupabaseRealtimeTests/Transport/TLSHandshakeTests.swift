import HostKit
import Testing

@testable import SupabaseRealtime

/// A peer that goes quiet inside a TLS handshake.
@Suite(.timeLimit(.minutes(5))) struct TLSHandshakeTests {
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

  /// What the client says first, up to the end of its greeting.
  private func greeting(to host: String) async -> [UInt8] {
    let greeting = Locked<[UInt8]>([])
    let server = RawServer { peer in
      guard let head = peer.readExactly(5), let body = peer.readExactly(Int(head[3]) << 8 | Int(head[4])) else {
        return
      }
      greeting.withLock { $0 = head + body }
    }
    let loopback = AddressResolver.Address(text: "127.0.0.1", isIPv6: false)
    let transport = LibwebsocketsTransport { _ in .success([loopback]) }
    let request = RealtimeTransportRequest(url: "wss://\(host):\(server.port)/", closeTimeout: .milliseconds(100))
    _ = await TransportProbe(request, over: transport).rest()
    return greeting.withLock { $0 }
  }

  /// The server learns which name it is asked for (RFC 6066 §3).
  @Test func theGreetingNamesTheServer() async {
    let name = Array("sni.example".utf8)
    // A list of 14 bytes with one entry: kind 0, 11 bytes.
    let extension_ = [0, 14, 0, 0, 11].map { UInt8($0) } + name
    #expect(await greeting(to: "sni.example").contains(extension_))
  }

  /// A server that knows TLS 1.1 at most: older ones choose it, newer ones say that there is nothing to choose.
  @Test(arguments: [
    // ServerHello of version 3.2 with one of the ciphers every client offers.
    [0x16, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2] + Array(repeating: 7, count: 32) + [0, 0xC0, 0x13, 0],
    // Fatal alert "protocol version".
    [0x15, 3, 2, 0, 2, 2, 70],
  ])
  func anOldVersionIsRefusedWithTheReason(answer: [UInt8]) async {
    let server = RawServer { peer in
      _ = peer.read()
      peer.write(answer)
      peer.drain()
    }
    let events = await TransportProbe(server.url.replacing("ws://", with: "wss://")).rest()
    #expect(
      events == [
        .failed(
          RealtimeTransportFailure(
            .tls,
            "The TLS handshake with 127.0.0.1:\(server.port) failed: the server knows no version of TLS that is new enough (1.2 at least)."
          ))
      ])
  }
}
