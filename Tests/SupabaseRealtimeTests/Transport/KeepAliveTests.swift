import CLibwebsockets
import Glibc
import HostKit
import Testing

@testable import SupabaseRealtime

/// The kernel itself asks a silent peer whether it is there, on direct connections and through a proxy.
@Suite(.timeLimit(.minutes(5)))
struct KeepAliveTests {
  private static func option(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int32 {
    var value: Int32 = -1
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, level, name, &value, &size)
    return value
  }

  @Test(arguments: [false, true])
  func theSocketAsksAsTheLimitsSay(isTunnelled: Bool) async throws {
    let server = RawServer { peer in
      guard var request = peer.readRequest() else { return }
      if request.hasPrefix("CONNECT ") {
        peer.write("HTTP/1.1 200 OK\r\n\r\n")
        guard let upgrade = peer.readRequest() else { return }
        request = upgrade
      }
      peer.write(RawPeer.acceptance(of: request))
      peer.drain()
    }
    var limits = LibwebsocketsTransport.Limits()
    limits.keepAlive.idleSeconds = 41
    limits.keepAlive.intervalSeconds = 7
    limits.keepAlive.probes = 5
    let proxy = ProxyRule(environment: isTunnelled ? ["ALL_PROXY": "http://127.0.0.1:\(server.port)"] : [:])
    let probe = TransportProbe(
      RealtimeTransportRequest(
        url: isTunnelled ? "ws://somewhere.local/x" : server.url, handshakeTimeout: .seconds(60),
        closeTimeout: .milliseconds(100)),
      over: LibwebsocketsTransport(proxy: proxy, limits: limits))
    let event = await probe.next()
    #expect(event == .opened)
    let descriptor = try #require(sockets(to: server.port).first)
    #expect(Self.option(descriptor, SOL_SOCKET, SO_KEEPALIVE) == 1)
    #expect(Self.option(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE) == 41)
    #expect(Self.option(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL) == 7)
    #expect(Self.option(descriptor, Int32(IPPROTO_TCP), TCP_KEEPCNT) == 5)
    probe.close()
    _ = await probe.rest()
  }
}
