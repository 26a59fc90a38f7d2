import CCurl
import Glibc
import HostKit

/// What is known about a failed transfer, and the sentence made of it. Pure, so that a table can test it.
struct CurlFailure {
  var code: CURLcode
  var isTooLarge = false
  var limit = 0
  var timeout: UInt64 = 0
  var connectTimeout: UInt64 = 0
  var resolved = false
  /// TCP and TLS stood.
  var connected = false
  /// Part of the answer came, or the request is long enough to have taken the time: not a server that says nothing.
  var hasMoved = false
  var systemError: Int32 = 0
  /// OpenSSL's certificate verdict, 0 when there was none.
  var verification = 0
  /// The proxy's answer to CONNECT, 0 when there was none.
  var proxyStatus = 0
  var proxyCode = 0
  /// libcurl's own words; used only to tell cases apart, never shown, because they may hold parts of a URL.
  var detail = ""

  func error(host: String, proxy: String?) -> HTTPError {
    if isTooLarge || code == CURLE_FILESIZE_EXCEEDED {
      return HTTPError(.tooLarge, "the answer of \(host) is larger than \(limit) bytes")
    }
    // What the connection is made to first.
    let peer = proxy.map { "the proxy \($0)" } ?? host
    switch code {
    case CURLE_URL_MALFORMAT: return HTTPError(.invalidURL, "the request address for \(host) is malformed")
    case CURLE_UNSUPPORTED_PROTOCOL where !resolved:
      return HTTPError(.invalidURL, "the request address for \(host) is neither http nor https")
    case CURLE_COULDNT_RESOLVE_PROXY: return HTTPError(.proxy, "the name of \(peer) cannot be resolved")
    case CURLE_COULDNT_RESOLVE_HOST: return HTTPError(.unresolved, "the name of \(host) cannot be resolved")
    case CURLE_PROXY: return HTTPError(.proxy, "\(peer) refused to connect to \(host) (code \(proxyCode))")
    case CURLE_OPERATION_TIMEDOUT: return timeoutError(host: host, peer: peer)
    case CURLE_COULDNT_CONNECT:
      let kind: HTTPError.Kind = proxy == nil ? .unreachable : .proxy
      return HTTPError(kind, "\(peer) cannot be reached: \(Self.reason(systemError))")
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ENGINE_INITFAILED,
      CURLE_SSL_CRL_BADFILE, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_USE_SSL_FAILED:
      return HTTPError(.tls, tlsSentence(host))
    case _ where proxyStatus != 0 && !(200..<300).contains(proxyStatus):
      return HTTPError(.proxy, "\(peer) refused the connection to \(host) with status \(proxyStatus)")
    case _ where proxy != nil && proxyStatus == 0 && !connected && Self.nonsense.contains(code.rawValue):
      return HTTPError(.proxy, "\(peer) did not answer as an HTTP proxy does; see that its address and port are right")
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_HTTP2_STREAM:
      return HTTPError(.connectionLost, "\(host) closed the connection before its answer was complete")
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
      return HTTPError(.other, "what \(host) answered is not valid HTTP")
    default:
      return HTTPError(.other, "the request to \(host) failed (libcurl code \(code.rawValue))")
    }
  }

  /// What libcurl makes of a peer that speaks no HTTP or hangs up.
  private static let nonsense: Set<UInt32> = [
    CURLE_SEND_ERROR.rawValue, CURLE_RECV_ERROR.rawValue, CURLE_GOT_NOTHING.rawValue,
    CURLE_UNSUPPORTED_PROTOCOL.rawValue, CURLE_WEIRD_SERVER_REPLY.rawValue,
  ]

  private func timeoutError(host: String, peer: String) -> HTTPError {
    if connected {
      return HTTPError(
        .timeout, "\(host) did not answer completely within \(Self.spelled(timeout))", isTooSlow: hasMoved)
    }
    let limit = Self.spelled(min(timeout, connectTimeout))
    if !resolved { return HTTPError(.timeout, "the name of \(peer) could not be resolved within \(limit)") }
    return HTTPError(.timeout, "no connection to \(peer) within \(limit)")
  }

  private func tlsSentence(_ host: String) -> String {
    if code == CURLE_SSL_CACERT_BADFILE {
      return "the certificate authorities cannot be read, so \(host) cannot be verified; "
        + "install ca-certificates or correct authorityFile"
    }
    // OpenSSL's X509_V_ERR numbers.
    switch verification {
    case 9, 13: return "the certificate of \(host) is not valid yet; check this machine's clock"
    case 10: return "the certificate of \(host) has expired"
    case 18: return "the certificate of \(host) is self-signed; to trust it, name it as authorityFile"
    case 2, 19, 20, 21:
      return
        "the certificate of \(host) is signed by an unknown authority; to trust that one, name its file as authorityFile"
    case 62, 64: return "the certificate of \(host) is for another name"
    // 0 and 1 are libcurl's: OpenSSL has not judged, or found nothing; the name is compared by libcurl itself.
    case 0...1 where code == CURLE_PEER_FAILED_VERIFICATION: return "the certificate of \(host) is for another name"
    case 0...1:
      return
        "no TLS connection to \(host) could be agreed; check that the port is the one for https, as a port for http does not answer so"
    default: return "the certificate of \(host) was not accepted (verification code \(verification))"
    }
  }

  private static func reason(_ systemError: Int32) -> String {
    switch systemError {
    case ECONNREFUSED: "connection refused"
    case EHOSTUNREACH: "no route to the host"
    case ENETUNREACH: "no route to the network"
    case ETIMEDOUT: "no answer"
    case ECONNRESET: "connection reset"
    case EADDRNOTAVAIL: "no local address or port left"
    default: "error \(systemError)"
    }
  }

  private static func spelled(_ duration: UInt64) -> String {
    duration >= 1_000_000_000 && duration % 1_000_000_000 == 0
      ? "\(duration / 1_000_000_000) s" : "\(duration / 1_000_000) ms"
  }
}
