import HostKit

/// Where one attempt goes: the server, and the proxy in between if there is one.
struct ConnectionTarget: Sendable {
  let url: WebSocketURL
  let proxy: ProxyServer?

  /// - Throws: `.invalidURL` for an address or a header that cannot be sent, and for plain text to a host that is not near
  ///   (``ServerURL``), `.proxy` for a proxy of another kind.
  init(_ request: RealtimeTransportRequest, proxies: ProxyRule) throws(RealtimeTransportFailure) {
    try Self.check(request.headers)
    url = try WebSocketURL(request.url)
    proxy = try Self.proxy(for: url, request, proxies)
  }

  private static func check(_ headers: [(name: String, value: String)]) throws(RealtimeTransportFailure) {
    let isClean = headers.allSatisfy { header in
      header.name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
        && header.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
    guard isClean else {
      throw RealtimeTransportFailure(.invalidURL, "A request header contains a character that HTTP does not allow.")
    }
  }

  private static func proxy(
    for url: WebSocketURL, _ request: RealtimeTransportRequest, _ proxies: ProxyRule
  ) throws(RealtimeTransportFailure) -> ProxyServer? {
    let server: ServerURL
    do {
      server = try ServerURL(request.url, for: .webSocket)
    } catch {
      throw RealtimeTransportFailure(.invalidURL, error.message)
    }
    if let problem = proxies.problem(for: server) { throw RealtimeTransportFailure(.invalidURL, problem) }
    guard let proxy = proxies.proxy(for: server) else { return nil }
    guard proxy.scheme == .http else {
      throw RealtimeTransportFailure(
        .proxy, "WebSockets go through plain HTTP proxies only; \(proxy.address) is another kind.")
    }
    return proxy
  }

  /// The host that is connected to.
  var peerHost: String { proxy?.host ?? url.host }
  var peerPort: UInt16 { proxy?.port ?? url.port }
  /// Host and port of it, as errors name them.
  var peerLabel: String { proxy?.label ?? url.origin }

  /// Says of a failure to find the peer whether it is the proxy's.
  func ofPeer(_ failure: RealtimeTransportFailure) -> RealtimeTransportFailure {
    guard let proxy, failure.kind == .unresolved || failure.kind == .unreachable else { return failure }
    return RealtimeTransportFailure(.proxy, "The proxy \(proxy.label) cannot be reached. \(failure.message)")
  }
}
