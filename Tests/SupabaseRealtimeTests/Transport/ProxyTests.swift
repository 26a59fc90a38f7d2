import HostKit
import Testing

@testable import SupabaseRealtime

@Suite(.timeLimit(.minutes(5)))
struct ProxyTests {
  private func probe(
    _ proxy: String, target: String, handshakeTimeout: UInt64 = .seconds(60)
  ) -> TransportProbe {
    guard let server = ProxyServer(proxy) else { preconditionFailure("no proxy address") }
    let rule = ProxyRule(server, includesLoopback: true)
    var request = RealtimeTransportRequest(url: target, closeTimeout: .milliseconds(100))
    request.handshakeTimeout = handshakeTimeout
    return TransportProbe(request, over: LibwebsocketsTransport(proxy: rule))
  }

  @Test func theConnectionGoesThroughTheTunnel() async {
    let asked = Locked<[String]>([])
    let proxy = RawServer { peer in
      guard let connect = peer.readRequest() else { return }
      peer.write("HTTP/1.1 200 Connection established\r\n\r\n")
      guard let upgrade = peer.acceptUpgrade() else { return }
      asked.withLock { $0 = [connect, upgrade] }
      peer.write(RawPeer.frame(1, Array("through".utf8)))
      peer.drain()
    }
    let probe = probe("http://ann:secret@127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/socket/websocket")
    #expect(await probe.next() == .opened)
    #expect(await probe.next() == .text("through"))
    probe.close()
    _ = await probe.rest()
    let (connect, upgrade) = asked.withLock { ($0[0], $0[1]) }
    #expect(connect.hasPrefix("CONNECT 192.168.7.7:4000 HTTP/1.1\r\n"))
    // ann:secret
    #expect(connect.lowercased().contains("proxy-authorization: basic yw5uonnly3jlda=="))
    #expect(upgrade.hasPrefix("GET /socket/websocket HTTP/1.1\r\n"))
    #expect(upgrade.contains("Host: 192.168.7.7:4000\r\n"))
    #expect(!upgrade.lowercased().contains("proxy-authorization"))
  }

  /// The pieces reach the client one by one.
  @Test(
    arguments: [
      "HTTP/1.1 200 Connection established\r\nVia: a\r\n\r\n".unicodeScalars.map { String($0) },
      ["HTTP/1.1 2", "00 OK\r\n\r\n"], ["HTTP/1.1 200 OK\r\n", "Via: a\r\n", "\r\n"],
      ["HTTP/1.1 200 OK\r\nVia: a\r\n\r", "\n"], ["HTTP/1.1 200\r\n\r\n"], ["HTTP/1.1 201 Made\r\n\r\n"],
      ["HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n"],
      ["HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"],
    ])
  func everyTwoHundredOpensTheTunnel(pieces: [String]) async {
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      for piece in pieces {
        peer.write(piece)
        if pieces.count < 5 { usleepABit() }
      }
      guard peer.acceptUpgrade() != nil else { return }
      peer.write(RawPeer.frame(1, Array("through".utf8)))
      peer.drain()
    }
    let probe = probe("http://127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/")
    #expect(await probe.next() == .opened)
    #expect(await probe.next() == .text("through"))
    probe.close()
    _ = await probe.rest()
    await lookAgain { openSockets(to: proxy.port) > 0 }
  }

  @Test func whatFollowsTheBlankLineComesFromTheServer() async {
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
      peer.drain()
    }
    let events = await probe("http://127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/").rest()
    #expect(events == [.refused(status: 404, retryAfterSeconds: nil, body: nil)])
  }

  @Test(arguments: ["HTTP/1.1 200 OK\r\n|\r\n", "HTTP/1.1 200 OK\r\nVia: |a\r\n\r\n"])
  func tlsBeginsInsideTheTunnel(answer: String) async {
    let first = Locked<[UInt8]>([])
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      for piece in answer.split(separator: "|") {
        peer.write(String(piece))
        usleepABit()
      }
      let bytes = peer.readExactly(2) ?? []
      first.withLock { $0 = bytes }
    }
    let events = await probe("http://127.0.0.1:\(proxy.port)", target: "wss://192.168.7.7/").rest()
    #expect(
      events == [.failed(RealtimeTransportFailure(.tls, "The TLS handshake with 192.168.7.7:443 failed."))])
    // A handshake record of TLS.
    #expect(first.withLock { $0 } == [0x16, 0x03])
  }

  @Test(arguments: [
    (
      "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=a\r\ncontent-length: 0\r\n\r\n",
      "(407: it does not accept the user name and password"
    ),
    ("HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\n\r\n", "(407: it wants a way of signing in other than Basic"),
    ("HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\n\r\n<html>Not here, zoe</html>", "(403: it does not allow"),
    ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "(502: it could not reach"), ("HTTP/1.1 503 No\r\n\r\n", "(503: "),
    ("HTTP/1.1 418\r\n\r\n", "(418)"), ("nonsense\r\n\r\n", "does not answer in HTTP/1"),
    ("<html>", "does not answer in HTTP/1"), ("", "closed the connection"),
    ("HTTP/1.1 200 OK\r\nVia: a\r\n", "closed the connection"),
  ])
  func aProxyThatRefusesIsNamedWithItsReason(answer: String, reason: String) async {
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write(answer)
      if !reason.hasPrefix("closed") { peer.drain() }
    }
    let events = await probe(
      "http://zoe:secret@127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/"
    ).rest()
    guard case .failed(let failure) = events.last else {
      Issue.record("\(events)")
      return
    }
    #expect(events.count == 1)
    #expect(failure.kind == .proxy)
    #expect(failure.message.hasPrefix("The proxy 127.0.0.1:\(proxy.port) "))
    #expect(failure.message.contains(reason))
    for text in ["zoe", "secret", "em9lOnNlY3JldA"] { #expect(!failure.message.contains(text)) }
    await lookAgain { openSockets(to: proxy.port) > 0 }
  }

  @Test(arguments: ["a", "X: a\r\n"])
  func headersWithoutEndAreCutOff(piece: String) async {
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write("HTTP/1.1 200 OK\r\n")
      while peer.write(Array(String(repeating: piece, count: 1_000).utf8)) {}
    }
    let events = await probe("http://127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/").rest()
    #expect(
      events == [
        .failed(
          RealtimeTransportFailure(
            .proxy,
            "The proxy 127.0.0.1:\(proxy.port) answered the request for a tunnel to 192.168.7.7:4000 with more than"
              + " 16384 bytes of headers."))
      ])
  }

  /// The deadline is that of the whole handshake, and the proxy is told by the end of the connection.
  @Test(arguments: ["", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nVia: a\r\n"])
  func aProxyThatFallsSilentIsLeftAtTheDeadline(answer: String) async {
    let (gone, continuation) = AsyncStream.makeStream(of: Void.self)
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write(answer)
      peer.drain()
      continuation.finish()
    }
    let events = await probe(
      "http://127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/", handshakeTimeout: .seconds(1)
    ).rest()
    #expect(
      events == [
        .failed(
          RealtimeTransportFailure(
            .timeout,
            "The proxy 127.0.0.1:\(proxy.port) did not answer the request for a tunnel to 192.168.7.7:4000"
              + " within 1 s."))
      ])
    for await _ in gone {}
  }

  @Test func anAttemptThatIsGivenUpLeavesTheProxy() async {
    let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      continuation.yield()
      peer.drain()
      continuation.finish()
    }
    let probe = probe("http://127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/")
    var waits = asked.makeAsyncIterator()
    await waits.next()
    probe.close(code: 1000, reason: "")
    #expect(await probe.rest() == [.closed(code: 1000, reason: "")])
    #expect(await waits.next() == nil)
  }

  @Test(arguments: ["127.0.0.1", "localhost", "does-not-exist.invalid"])
  func aProxyThatIsNotThereIsNamed(host: String) async {
    let port = RawServer(script: nil).port
    let events = await probe("http://\(host):\(port)", target: "ws://192.168.7.7/").rest()
    guard case .failed(let failure) = events.last else {
      Issue.record("\(events)")
      return
    }
    #expect(failure.kind == .proxy)
    #expect(failure.message.hasPrefix("The proxy \(host):\(port) cannot be reached"))
  }

  @Test func otherKindsOfProxyAreRefused() async {
    let events = await probe("socks5://127.0.0.1:1", target: "ws://192.168.7.7/").rest()
    #expect(events.map(\.failureKind) == [.proxy])
  }
}
