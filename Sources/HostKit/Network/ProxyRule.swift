/// An HTTP proxy that tunnels with CONNECT.
public struct ProxyServer: Sendable, Hashable, CustomStringConvertible {
  public enum Scheme: String, Sendable {
    /// Plain text to the proxy; what is tunnelled through it has its own TLS.
    case http
    case https
    case socks5
    /// SOCKS 5, names resolved by the proxy.
    case socks5h
  }

  public let scheme: Scheme
  /// Lower case, without brackets.
  public let host: String
  public let port: UInt16
  /// Percent-decoded.
  public let user: String?
  public let password: String?

  /// Reads `[scheme://][user[:password]@]host[:port][/]`. Without a scheme it is `http`, without a port 80, 443 or 1080
  /// by scheme (libcurl's 1080 for plain proxies is a surprise nobody relies on).
  public init?(_ text: String) {
    var rest = Substring(text)
    var scheme = Scheme.http
    if let colon = rest.firstIndex(of: ":"), rest[colon...].hasPrefix("://") {
      switch rest[..<colon].lowercased() {
      case "http": scheme = .http
      case "https": scheme = .https
      case "socks5": scheme = .socks5
      case "socks5h", "socks": scheme = .socks5h
      default: return nil
      }
      rest = rest[colon...].dropFirst(3)
    }
    if let slash = rest.firstIndex(of: "/") {
      guard rest[slash...] == "/" else { return nil }
      rest = rest[..<slash]
    }
    var user: String?
    var password: String?
    if let at = rest.lastIndex(of: "@") {
      let pair = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      user = PercentCoding.decode(pair[0])
      password = pair.count > 1 ? PercentCoding.decode(pair[1]) : nil
      rest = rest[rest.index(after: at)...]
    }
    guard let pair = HostAndPort.split(rest) else { return nil }
    let port: UInt16
    if let given = pair.port {
      guard let number = UInt16(given), number > 0 else { return nil }
      port = number
    } else {
      port =
        switch scheme {
        case .http: 80
        case .https: 443
        case .socks5, .socks5h: 1080
        }
    }
    self.scheme = scheme
    self.host = pair.host
    self.port = port
    self.user = user
    self.password = password
  }

  private var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }

  /// `host:port`.
  public var label: String { "\(bracketedHost):\(port)" }

  /// The proxy without its credentials.
  public var address: String { "\(scheme.rawValue)://\(label)" }

  public var description: String { address }
}

/// Which connections go through a proxy. A pure decision, the same for HTTP requests and WebSockets.
///
/// Environment: `HTTPS_PROXY` for encrypted targets, `http_proxy` for plain ones (never for encrypted ones; its upper
/// case form is ignored because CGI programs get it from a request header), `ALL_PROXY` for both, `NO_PROXY` for
/// exceptions; lower-case names win. Loopback targets are never proxied unless `includesLoopback` says so.
public struct ProxyRule: Sendable, Hashable {
  public var secure: ProxyServer?
  public var plain: ProxyServer?
  public var exceptions: [ProxyException]
  public var includesLoopback: Bool
  /// Names of the variables that should say which proxy to use and cannot be read.
  private var unreadableSecure: String?
  private var unreadablePlain: String?

  /// Nothing is proxied.
  public static let direct = ProxyRule(secure: nil, plain: nil)

  public init(
    secure: ProxyServer?, plain: ProxyServer?, exceptions: [ProxyException] = [], includesLoopback: Bool = false
  ) {
    self.secure = secure
    self.plain = plain
    self.exceptions = exceptions
    self.includesLoopback = includesLoopback
  }

  /// One proxy for everything, as a configuration file would say it.
  public init(_ proxy: ProxyServer, exceptions: String = "", includesLoopback: Bool = false) {
    self.init(
      secure: proxy, plain: proxy, exceptions: ProxyException.list(exceptions), includesLoopback: includesLoopback)
  }

  /// - Parameter environment: the process's variables. One that names a proxy and cannot be read is a `problem` of every
  ///   connection it decides about.
  public init(environment: [String: String], includesLoopback: Bool = false) {
    func first(_ names: String...) -> String? { names.first { environment[$0]?.isEmpty == false } }
    let secure = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    let plain = first("http_proxy", "all_proxy", "ALL_PROXY")
    self.init(
      secure: secure.flatMap { environment[$0] }.flatMap(ProxyServer.init),
      plain: plain.flatMap { environment[$0] }.flatMap(ProxyServer.init),
      exceptions: ProxyException.list(first("no_proxy", "NO_PROXY").flatMap { environment[$0] } ?? ""),
      includesLoopback: includesLoopback)
    unreadableSecure = self.secure == nil ? secure : nil
    unreadablePlain = self.plain == nil ? plain : nil
  }

  /// Names of the variables that are set but are no proxy address; they are worth a warning.
  public static func unreadable(in environment: [String: String]) -> [String] {
    ["all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY", "http_proxy"].filter { name in
      environment[name].map { !$0.isEmpty && ProxyServer($0) == nil } ?? false
    }
  }

  /// The proxy for a connection to `url`; nil means connect directly, unless there is a `problem`.
  public func proxy(for url: ServerURL) -> ProxyServer? {
    guard let proxy = url.isSecure ? secure : plain else { return nil }
    return isDirect(url) ? nil : proxy
  }

  /// Why nothing may connect to `url`: a proxy is asked for and cannot be read. Connecting directly would go around what
  /// somebody wanted to be gone through. A sentence that names the variable, never what it holds.
  public func problem(for url: ServerURL) -> String? {
    guard let name = url.isSecure ? unreadableSecure : unreadablePlain, !isDirect(url) else { return nil }
    return "\(name) is set, but is no proxy's address; correct or unset it, or name \(url.host) in NO_PROXY"
  }

  private func isDirect(_ url: ServerURL) -> Bool {
    url.isLoopback && !includesLoopback || exceptions.contains { $0.matches(url) }
  }
}

/// One entry of `NO_PROXY`.
public enum ProxyException: Sendable, Hashable {
  /// `*`
  case everything
  /// A name and everything below it, with or without a leading dot; optionally one port only.
  case domain(String, port: UInt16?)
  /// An address, or a network in CIDR notation.
  case network(IPAddress, length: Int, port: UInt16?)

  /// Reads a list separated by commas or spaces; entries that make no sense are skipped.
  public static func list(_ text: String) -> [ProxyException] {
    text.split { $0 == "," || $0 == " " || $0 == "\t" }.compactMap { ProxyException($0) }
  }

  init?(_ text: Substring) {
    if text == "*" {
      self = .everything
      return
    }
    if let slash = text.firstIndex(of: "/") {
      guard let network = IPAddress(text[..<slash]), let length = Int(text[text.index(after: slash)...]),
        (0...network.bytes.count * 8).contains(length)
      else { return nil }
      self = .network(network, length: length, port: nil)
      return
    }
    if let address = IPAddress(text) {
      self = .network(address, length: address.bytes.count * 8, port: nil)
      return
    }
    var name = text
    if name.hasPrefix("*.") { name = name.dropFirst(2) }
    if name.hasPrefix(".") { name = name.dropFirst() }
    guard let pair = HostAndPort.split(name) else { return nil }
    var port: UInt16?
    if let given = pair.port {
      guard let number = UInt16(given) else { return nil }
      port = number
    }
    if let address = IPAddress(pair.host) {
      self = .network(address, length: address.bytes.count * 8, port: port)
    } else {
      self = .domain(pair.host, port: port)
    }
  }

  func matches(_ url: ServerURL) -> Bool {
    switch self {
    case .everything: true
    case .domain(let name, let port):
      (url.host == name || url.host.hasSuffix(".\(name)")) && (port ?? url.port) == url.port
    case .network(let network, let length, let port):
      IPAddress(url.host)?.isInside(network, length: length) == true && (port ?? url.port) == url.port
    }
  }
}
