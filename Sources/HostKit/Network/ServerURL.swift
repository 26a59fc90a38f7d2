/// The address of a server: scheme, host, port and path prefix, checked once when it is read.
///
/// Plain text is allowed only to hosts that are near (Kizuna wire contract, section 2): loopback, `localhost`,
/// `*.local` and private addresses. Its description is safe to log: user names and passwords are refused, the path and
/// the query are left out.
public struct ServerURL: Sendable, Hashable, CustomStringConvertible {
  public enum Use: Sendable {
    /// `https` and `http`.
    case http
    /// `wss` and `ws`; `https` and `http` are read as these. A query is allowed.
    case webSocket
  }

  /// Whether the connection is encrypted.
  public let isSecure: Bool
  /// Lower case, without the brackets of an IPv6 address.
  public let host: String
  public let port: UInt16
  /// Empty, or starting with `/`; never ends with `/`.
  public let path: String
  /// Without `?`; only for WebSockets.
  public let query: String?

  /// - Throws: `ServerURLError`, a sentence without the URL itself.
  public init(_ text: String, for use: Use = .http) throws(ServerURLError) {
    if text.contains("<") {
      throw ServerURLError("the server address holds a placeholder; put your project's own name in the place of <…>")
    }
    let parts = try Self.split(text, use)
    switch (parts.scheme, use) {
    case ("https", _), ("wss", .webSocket): isSecure = true
    case ("http", _), ("ws", .webSocket): isSecure = false
    case ("wss", .http), ("ws", .http): throw ServerURLError("the server address must start with https://, not wss://")
    default: throw ServerURLError("the server address must start with \(use == .http ? "https" : "wss")://")
    }
    (host, port) = try Self.splitAuthority(parts.authority, defaultPort: isSecure ? 443 : 80)
    if parts.rest.contains("#") { throw ServerURLError("the server address must not hold a '#'") }
    let rest = parts.rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var path = rest.first.map(String.init) ?? ""
    while path.hasSuffix("/") { path.removeLast() }
    self.path = path
    query = rest.count > 1 ? String(rest[1]) : nil
    if query != nil, use == .http { throw ServerURLError("the server address must not hold a query") }
    if !isSecure, !isNear {
      throw ServerURLError(
        "plain \(use == .http ? "http" : "ws") is allowed only to this machine and to private addresses; use "
          + "\(use == .http ? "https" : "wss") for \(host)")
    }
  }

  private static func split(_ text: String, _ use: Use) throws(ServerURLError) -> (
    scheme: String, authority: Substring, rest: Substring
  ) {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw ServerURLError("the server address must hold only ASCII characters and no spaces")
    }
    let bytes = text.utf8
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
      let (secure, plain) = use == .http ? ("https", "http") : ("wss", "ws")
      // Only for an address that may be plain is that the likely wish.
      let host = HostAndPort.split(text.prefix { $0 != "/" && $0 != "?" })?.host
      let isNear = host.map(Self.isNear) ?? false
      throw ServerURLError(
        "the server address must have the form \(isNear ? "\(plain)://host or " : "")\(secure)://host")
    }
    let start = bytes.index(colon, offsetBy: 3)
    let end =
      bytes[start...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
      ?? bytes.endIndex
    return (text[..<colon].lowercased(), text[start..<end], text[end...])
  }

  /// Host in lower case without brackets, and port.
  private static func splitAuthority(_ authority: Substring, defaultPort: UInt16) throws(ServerURLError) -> (
    String, UInt16
  ) {
    if authority.contains("@") {
      throw ServerURLError("the server address must not hold a user name or a password")
    }
    guard let pair = HostAndPort.split(authority) else {
      throw ServerURLError("the server address has no valid host name")
    }
    guard let portText = pair.port else { return (pair.host, defaultPort) }
    guard let port = UInt16(portText), port > 0 else {
      throw ServerURLError("the port in the server address must be a number from 1 to 65535")
    }
    return (pair.host, port)
  }

  /// `localhost`, 127/8 or `::1`.
  public var isLoopback: Bool { host == "localhost" || IPAddress(host)?.isLoopback == true }

  /// A host to which plain text is allowed.
  public var isNear: Bool { Self.isNear(host) }

  private static func isNear(_ host: String) -> Bool {
    if let address = IPAddress(host) { return address.isLoopback || address.isPrivate }
    return host == "localhost" || host.hasSuffix(".local")
  }

  /// `host:port`, the most of an address that an error or a log line names.
  public var label: String { "\(bracketedHost):\(port)" }

  public var description: String { label }

  private var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }

  /// What an HTTP `Host` header says: without the port when it is the scheme's own.
  public var authority: String {
    port == (isSecure ? 443 : 80) ? bracketedHost : label
  }

  /// The full address for HTTP requests, `suffix` (starting with `/`, or empty) appended to the path.
  public func http(_ suffix: String = "") -> String {
    "\(isSecure ? "https" : "http")://\(authority)\(path)\(suffix)"
  }

  /// The full address for a WebSocket, `suffix` appended to the path, the query kept.
  public func webSocket(_ suffix: String = "") -> String {
    "\(isSecure ? "wss" : "ws")://\(authority)\(path)\(suffix)\(query.map { "?\($0)" } ?? "")"
  }
}

/// Why an address cannot be used. Always `CONFIG_INVALID`; the sentence names the host at most.
public struct ServerURLError: Error, Sendable, Hashable, CustomStringConvertible {
  public let code = ErrorCode.configInvalid
  public let message: String

  init(_ message: String) {
    self.message = message
  }

  public var description: String { message }

  public static func == (left: Self, right: Self) -> Bool { left.message == right.message }
  public func hash(into hasher: inout Hasher) { hasher.combine(message) }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
enum HostAndPort {
  /// The host in lower case without brackets and without a trailing dot; nil when it cannot be a host.
  static func split(_ text: some StringProtocol) -> (host: String, port: String?)? {
    var host: String
    var port: String?
    if text.hasPrefix("[") {
      guard let close = text.firstIndex(of: "]") else { return nil }
      host = String(text[text.index(after: text.startIndex)..<close])
      let tail = text[text.index(after: close)...]
      guard tail.isEmpty || tail.hasPrefix(":") else { return nil }
      port = tail.isEmpty ? nil : String(tail.dropFirst())
      guard host.contains(":"), IPAddress(host) != nil else { return nil }
    } else {
      let pieces = text.split(separator: ":", omittingEmptySubsequences: false)
      guard pieces.count <= 2 else { return nil }
      host = String(pieces[0])
      port = pieces.count == 2 ? String(pieces[1]) : nil
      if host.hasSuffix(".") { host.removeLast() }
      let isPlain = host.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
          true
        default: false
        }
      }
      guard !host.isEmpty, isPlain, !host.hasPrefix("."), !host.contains("..") else { return nil }
    }
    return (host.lowercased(), port)
  }
}
