import Glibc
import HostKit

/// The CONNECT for one server, and the sentences for a proxy that does not grant it. They name host and port of both;
/// the user name and password of the proxy are in the request only.
struct TunnelRequest: Sendable {
  /// Host and port of the server.
  let origin: String
  let proxy: ProxyServer

  var bytes: [UInt8] {
    var lines = ["CONNECT \(origin) HTTP/1.1", "Host: \(origin)"]
    if let user = proxy.user {
      lines.append("Proxy-Authorization: Basic \(Base64.encode("\(user):\(proxy.password ?? "")".utf8))")
    }
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  // MARK: Failures

  /// - Parameter code: an errno.
  func unreachable(_ code: Int32) -> RealtimeTransportFailure {
    failure("cannot be reached: \(String(cString: strerror(code)))")
  }

  var closed: RealtimeTransportFailure {
    failure("closed the connection before it had answered the request for a tunnel to \(origin)")
  }

  var tooLong: RealtimeTransportFailure {
    failure(
      "answered the request for a tunnel to \(origin) with more than \(ProxyAnswer.maximumBytes) bytes of headers")
  }

  var notHTTP: RealtimeTransportFailure {
    failure("does not answer in HTTP/1, so it opened no tunnel to \(origin); check the address of the proxy")
  }

  func refused(status: Int, takesBasic: Bool) -> RealtimeTransportFailure {
    let reason: String? =
      switch status {
      case 407 where !takesBasic: "it wants a way of signing in other than Basic, the only one there is for WebSockets"
      case 407 where proxy.user == nil: "it wants a user name and password; write them into the address of the proxy"
      case 407: "it does not accept the user name and password in the address of the proxy"
      case 403: "it does not allow connections to there"
      case 405, 501: "it opens no tunnels, which WebSockets need"
      case 502, 504: "it could not reach the server"
      case 503: "it cannot do it now"
      default: nil
      }
    return failure("refused the tunnel to \(origin) (\(status)\(reason.map { ": \($0)" } ?? ""))")
  }

  private func failure(_ predicate: String) -> RealtimeTransportFailure {
    RealtimeTransportFailure(.proxy, "The proxy \(proxy.label) \(predicate).")
  }
}
