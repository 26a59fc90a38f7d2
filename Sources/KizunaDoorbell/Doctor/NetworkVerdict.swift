import HTTPClient
import HostKit

/// What stands between this host and the server, and whether it is there.
enum NetworkVerdict {
  /// - Parameters:
  ///   - targets: what is reached, by the name it has for people.
  ///   - environment: the process's variables.
  static func proxies(_ targets: [(name: String, server: ServerURL)], environment: [String: String]) -> [Finding] {
    let rule = ProxyRule(environment: environment)
    // Nothing goes around a proxy that is asked for.
    if let problem = targets.lazy.compactMap({ rule.problem(for: $0.server) }).first {
      return [.failed(.proxy, .configuration, sentence: problem, otherwise: "correct or unset the variable")]
    }
    let ways = targets.map { target in
      "\(target.name) \(rule.proxy(for: target.server).map { "through \($0.address)" } ?? "directly")"
    }
    let unreadable = ProxyRule.unreadable(in: environment)
    guard unreadable.isEmpty else {
      return [
        .warning(
          .proxy,
          "\(unreadable.joined(separator: ", ")) is set, but is no proxy's address; \(ways.joined(separator: ", "))",
          remedy: "correct or unset the variable")
      ]
    }
    return [.ok(.proxy, ways.joined(separator: ", "))]
  }

  /// - Parameters:
  ///   - proxy: the one on the way, which looks names up itself.
  ///   - addresses: what the system found; nil when it did not answer in time.
  static func lookup(
    _ server: ServerURL, proxy: ProxyServer?, addresses: Result<[String], NameLookupFailure>?
  ) -> Finding {
    if let proxy, proxy.scheme != .socks5 {
      return .skipped(.nameLookup, "the proxy \(proxy.label) looks \(server.host) up", for: nil)
    }
    switch addresses {
    case nil:
      return .failed(
        .nameLookup, .unreachable, "looking \(server.host) up takes longer than 10 s",
        remedy: "check the name servers of this host")
    case .failure(let failure)?:
      return .failed(
        .nameLookup, .unreachable, failure.message,
        remedy: "check the name in the address, and the name servers of this host")
    case .success(let found)?:
      return .ok(.nameLookup, "\(server.host) is \(found.prefix(4).joined(separator: ", "))")
    }
  }

  /// - Parameter duration: nanoseconds.
  static func server(_ server: ServerURL, _ answer: Result<Int, HTTPError>, duration: UInt64) -> Finding {
    switch answer {
    case .failure(let error):
      let remedy =
        switch error.kind {
        case .tls: "check this host's clock and its certificate authorities, and the server's certificate"
        case .proxy: "check the proxy, or name the server in NO_PROXY"
        default: "check the address, the network and that the server runs"
        }
      let exit: ExitCode = error.kind == .invalidURL ? .configuration : .unreachable
      return .failed(.server, exit, sentence: error.message, otherwise: remedy)
    case .success(300..<400):
      return .failed(
        .server, .configuration, "\(server.label) redirects elsewhere",
        remedy: "give the address it redirects to as url")
    case .success(let status) where status >= 500:
      return .failed(
        .server, .unreachable, "\(server.label) answers HTTP \(status)", remedy: "wait for the server, or see its log")
    case .success:
      return .ok(
        .server, "\(server.label) answers within \(max(1, (duration + 999_999) / 1_000_000)) ms, connecting included")
    }
  }
}

/// Why a name has no address.
struct NameLookupFailure: Error, Sendable, Hashable {
  var message: String
}
