import HostKit

/// How requests to one origin travel; decided once per origin.
struct Route: Sendable, Hashable {
  /// `host:port`, for error texts.
  let label: String
  let isSecure: Bool
  let isLoopback: Bool
  let proxy: ProxyServer?

  init(_ url: ServerURL, proxy: ProxyServer?) {
    label = url.label
    isSecure = url.isSecure
    isLoopback = url.isLoopback
    self.proxy = proxy
  }
}

/// The routes of the few origins a client talks to.
final class RouteTable: Sendable {
  private let rule: ProxyRule
  private let routes = Locked<[Substring: Route]>([:])
  private static let capacity = 32

  init(_ rule: ProxyRule) {
    self.rule = rule
  }

  /// - Throws: `HTTPError` of kind `.invalidURL`.
  func route(for url: String) throws(HTTPError) -> Route {
    let origin = Self.origin(of: url)
    if let known = routes.withLock({ $0[origin] }) { return known }
    let server: ServerURL
    do {
      server = try ServerURL(String(origin))
    } catch {
      throw HTTPError(.invalidURL, error.message)
    }
    if let problem = rule.problem(for: server) { throw HTTPError(.invalidURL, problem) }
    let route = Route(server, proxy: rule.proxy(for: server))
    routes.withLock { routes in
      if routes.count >= Self.capacity { routes.removeAll() }
      // A copy, so that the table does not keep whole URLs alive.
      routes[Substring(String(origin))] = route
    }
    return route
  }

  /// Everything before the path.
  private static func origin(of url: String) -> Substring {
    var slashes = 0
    let end = url.utf8.firstIndex { byte in
      if byte == UInt8(ascii: "/") { slashes += 1 }
      return slashes == 3 || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }
    return url[..<(end ?? url.endIndex)]
  }
}
