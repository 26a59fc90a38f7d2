import HostKit
import Testing

@testable import SupabaseRealtime

@Suite(.timeLimit(.minutes(1)))
struct ProxyTests {
  private func probe(_ proxy: String, target: String) -> TransportProbe {
    guard let server = ProxyServer(proxy) else { preconditionFailure("no proxy address") }
    let rule = ProxyRule(server, includesLoopback: true)
    var request = RealtimeTransportRequest(url: target, closeTimeout: .milliseconds(100))
    request.handshakeTimeout = .seconds(5)
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

  @Test(arguments: [
    "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 503 No\r\n\r\n",
    "nonsense\r\n\r\n", "",
  ])
  func aProxyThatRefusesIsNamed(answer: String) async {
    let proxy = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write(answer)
      if !answer.isEmpty { peer.drain() }
    }
    let events = await probe(
      "http://ann:secret@127.0.0.1:\(proxy.port)", target: "ws://192.168.7.7:4000/"
    ).rest()
    guard case .failed(let failure) = events.last else {
      Issue.record("\(events)")
      return
    }
    #expect(events.count == 1)
    #expect(failure.kind == .proxy)
    #expect(failure.message.contains("127.0.0.1:\(proxy.port)"))
    #expect(!failure.message.contains("secret"))
  }

  @Test func aProxyThatIsNotThereIsNamed() async {
    let port = RawServer(script: nil).port
    let events = await probe("http://127.0.0.1:\(port)", target: "ws://192.168.7.7/").rest()
    #expect(events.map(\.failureKind) == [.proxy])
  }

  @Test func otherKindsOfProxyAreRefused() async {
    let events = await probe("socks5://127.0.0.1:1", target: "ws://192.168.7.7/").rest()
    #expect(events.map(\.failureKind) == [.proxy])
  }
}
