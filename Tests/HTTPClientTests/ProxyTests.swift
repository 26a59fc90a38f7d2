import HTTPClient
import HostKit
import Testing

@Suite struct ProxyTests {
  /// A proxy that opens tunnels, and speaks for the server at their other end.
  private func proxy(status: Int = 200) -> RawServer {
    RawServer { request, connection in
      if request.method == "CONNECT" {
        connection.write("HTTP/1.1 \(status) X\r\nX-Proxy: 1\r\nContent-Length: 0\r\n\r\n")
        return status == 200 ? .keep : .close
      }
      connection.answer(200, request.target)
      return .keep
    }
  }

  private func client(_ address: String, exceptions: String = "", includesLoopback: Bool = true) throws
    -> CurlHTTPClient
  {
    let server = try #require(ProxyServer(address))
    return CurlHTTPClient(.init(proxy: ProxyRule(server, exceptions: exceptions, includesLoopback: includesLoopback)))
  }

  @Test func oneTunnelCarriesAllRequests() async throws {
    let proxy = proxy()
    defer { proxy.stop() }
    let client = try client("http://us%20er:p%3Ass@127.0.0.1:\(proxy.port)")
    for number in 0..<3 {
      let response = try await client.send(HTTPRequest(method: "GET", url: "http://10.255.255.1:9/\(number)"))
      #expect(String(decoding: response.body, as: UTF8.self) == "/\(number)")
      #expect(response.header("x-proxy") == nil)
    }
    await client.shutdown()
    #expect(proxy.received.map(\.method) == ["CONNECT", "GET", "GET", "GET"])
    #expect(proxy.received.first?.target == "10.255.255.1:9")
    // The credentials are for the proxy alone.
    #expect(proxy.received.map { $0.header("proxy-authorization") } == ["Basic dXMgZXI6cDpzcw==", nil, nil, nil])
  }

  @Test func exceptionsAndLoopbackGoDirectly() async throws {
    let proxy = proxy()
    let server = RawServer { _, connection in
      connection.answer(200, "direct")
      return .keep
    }
    defer {
      proxy.stop()
      server.stop()
    }
    let address = "http://127.0.0.1:\(proxy.port)"
    for client in [
      try client(address, exceptions: "127.0.0.1"), try client(address, includesLoopback: false), CurlHTTPClient(),
    ] {
      let response = try await client.send(HTTPRequest(method: "GET", url: server.url))
      #expect(String(decoding: response.body, as: UTF8.self) == "direct")
      await client.shutdown()
    }
    #expect(proxy.connectionCount == 0)
  }

  @Test(arguments: [403, 407, 502]) func aRefusalIsReportedWithHostAndStatusOnly(status: Int) async throws {
    let proxy = proxy(status: status)
    defer { proxy.stop() }
    let client = try client("http://user:s3cret@127.0.0.1:\(proxy.port)")
    let error = await #expect(throws: HTTPError.self) {
      try await client.send(HTTPRequest(method: "GET", url: "http://10.255.255.1:9/path"))
    }
    await client.shutdown()
    #expect(
      error
        == HTTPError(
          .proxy, "the proxy 127.0.0.1:\(proxy.port) refused the connection to 10.255.255.1:9 with status \(status)"))
  }

  @Test func aProxyThatIsAwayIsNamed() async throws {
    let port = RawServer.freePort()
    let client = try client("http://user:s3cret@127.0.0.1:\(port)")
    let error = await #expect(throws: HTTPError.self) {
      try await client.send(HTTPRequest(method: "GET", url: "http://10.255.255.1:9/path"))
    }
    await client.shutdown()
    #expect(error == HTTPError(.proxy, "the proxy 127.0.0.1:\(port) cannot be reached: connection refused"))
  }
}
