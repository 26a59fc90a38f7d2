/// A `ws://` or `wss://` address taken apart for libwebsockets.
struct WebSocketURL: Sendable, Equatable {
  var isSecure: Bool
  /// Without brackets when it is an IPv6 address.
  var host: String
  var port: UInt16
  /// Path and query, at least `/`.
  var target: String

  /// libwebsockets 4.1 cuts longer request lines without a word.
  static let maximumTargetBytes = 1_900
  /// And longer `Host` lines.
  private static let maximumHostBytes = 110

  init(_ text: String) throws(RealtimeTransportFailure) {
    let bytes = Array(text.utf8)
    guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw RealtimeTransportFailure(
        .invalidURL, "The Realtime address contains a character that must be percent-encoded.")
    }
    var rest = Substring(text)
    let defaultPort: UInt16
    let lowered = text.prefix(6).lowercased()
    if lowered.hasPrefix("ws://") {
      (isSecure, defaultPort) = (false, 80)
      rest = rest.dropFirst(5)
    } else if lowered.hasPrefix("wss://") {
      (isSecure, defaultPort) = (true, 443)
      rest = rest.dropFirst(6)
    } else {
      throw RealtimeTransportFailure(.invalidURL, "The Realtime address must begin with ws:// or wss://.")
    }
    if let fragment = rest.firstIndex(of: "#") { rest = rest[..<fragment] }
    let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = rest[..<authorityEnd]
    target = String(rest[authorityEnd...])
    if !target.hasPrefix("/") { target = "/" + target }
    guard !authority.contains("@") else {
      throw RealtimeTransportFailure(.invalidURL, "The Realtime address must not contain a user name or password.")
    }
    let (host, portText) = try Self.split(authority)
    guard !host.isEmpty else { throw RealtimeTransportFailure(.invalidURL, "The Realtime address names no host.") }
    guard host.utf8.count <= Self.maximumHostBytes else {
      throw RealtimeTransportFailure(.invalidURL, "The host name of the Realtime address is too long.")
    }
    guard let port = portText.map({ UInt16($0) }) ?? defaultPort, port > 0 else {
      throw RealtimeTransportFailure(.invalidURL, "The Realtime address has a port that is not between 1 and 65535.")
    }
    (self.host, self.port) = (host, port)
    guard target.utf8.count <= Self.maximumTargetBytes else {
      throw RealtimeTransportFailure(
        .invalidURL,
        "The path and query of the Realtime address have \(target.utf8.count) bytes, more than"
          + " \(Self.maximumTargetBytes); send a long key as a header.")
    }
    if isSecure && host.contains(":") {
      // libwebsockets takes the name to verify from the Host line up to the first colon.
      throw RealtimeTransportFailure(.invalidURL, "A wss:// address needs a host name or an IPv4 address.")
    }
  }

  private static func split(
    _ authority: Substring
  ) throws(RealtimeTransportFailure) -> (host: String, port: Substring?) {
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else {
        throw RealtimeTransportFailure(.invalidURL, "The Realtime address has an unclosed bracket.")
      }
      let rest = authority[authority.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else {
        throw RealtimeTransportFailure(.invalidURL, "The Realtime address has text between host and port.")
      }
      return (String(authority.dropFirst()[..<end]), rest.isEmpty ? nil : rest.dropFirst())
    }
    guard let colon = authority.firstIndex(of: ":") else { return (String(authority), nil) }
    return (String(authority[..<colon]), authority[authority.index(after: colon)...])
  }

  /// The `Host` header: the port only where it is not the default one.
  var hostHeader: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }

  /// Host and port as errors and logs name them.
  var origin: String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}
