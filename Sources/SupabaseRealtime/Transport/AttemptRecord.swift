/// What happened to one connection so far, and from it the one event that ends it.
///
/// libwebsockets reports an end in several ways, sometimes twice; here the facts are collected and judged once.
struct AttemptRecord {
  enum Phase: Int, Comparable {
    case resolving, connecting, tunnelling, securing, upgrading, open

    static func < (left: Phase, right: Phase) -> Bool { left.rawValue < right.rawValue }
  }

  struct Close: Equatable {
    var code: UInt16?
    var reason: String
  }

  struct Refusal: Equatable {
    var status: Int
    var retryAfterSeconds: Int?
    var body: String?
  }

  /// Host and port, the only part of the address that errors name.
  let origin: String
  /// Host and port of the proxy in between.
  let proxy: String?
  var phase = Phase.resolving
  var requestedClose: Close?
  var peerClose: Close?
  var refusal: Refusal?
  /// A failure that was decided here: resolution, a proxy, a deadline, a full queue.
  var failure: RealtimeTransportFailure?
  /// Why the certificate was not accepted, in OpenSSL's words.
  var certificateProblem: String?
  /// Why the TLS handshake ended, where either side said so.
  var handshakeProblem: String?

  init(origin: String, proxy: String? = nil) {
    self.origin = origin
    self.proxy = proxy
  }

  func finalEvent() -> RealtimeTransportEvent {
    if phase != .open, let requestedClose {
      return .closed(code: requestedClose.code, reason: requestedClose.reason)
    }
    if let failure { return .failed(failure) }
    if let refusal {
      return .refused(
        status: refusal.status, retryAfterSeconds: refusal.retryAfterSeconds, body: refusal.body)
    }
    if let peerClose { return .closed(code: peerClose.code, reason: peerClose.reason) }
    if let requestedClose { return .closed(code: requestedClose.code, reason: requestedClose.reason) }
    return .failed(unexplained)
  }

  /// The handshake deadline passed.
  func handshakeTimeout(after nanoseconds: UInt64) -> RealtimeTransportFailure {
    let seconds = nanoseconds / 1_000_000_000
    let message =
      switch phase {
      case .resolving: "The host name of \(proxy ?? origin) was not resolved within \(seconds) s."
      case .connecting: "No connection to \(proxy ?? origin) within \(seconds) s."
      case .tunnelling:
        "The proxy \(proxy ?? "") did not answer the request for a tunnel to \(origin) within \(seconds) s."
      case .securing: "\(origin) did not finish the TLS handshake within \(seconds) s."
      case .upgrading, .open: "\(origin) did not answer the WebSocket upgrade within \(seconds) s."
      }
    return RealtimeTransportFailure(.timeout, message)
  }

  /// A message went on past what any Realtime server sends.
  func endlessMessage(after bytes: Int) -> RealtimeTransportFailure {
    RealtimeTransportFailure(
      .endlessMessage,
      "\(origin) sent a message of more than \(bytes) bytes, so the connection was closed; a Realtime server sends none"
        + " that long.")
  }

  private var unexplained: RealtimeTransportFailure {
    if let certificateProblem {
      return RealtimeTransportFailure(
        .tls, "The certificate of \(origin) was not accepted: \(certificateProblem).")
    }
    return switch phase {
    case .resolving, .tunnelling:
      RealtimeTransportFailure(.other, "The connection to \(origin) could not be started.")
    case .connecting: RealtimeTransportFailure(.unreachable, "\(origin) does not accept connections.")
    case .securing:
      RealtimeTransportFailure(
        .tls, "The TLS handshake with \(origin) failed\(handshakeProblem.map { ": " + $0 } ?? "").")
    case .upgrading:
      RealtimeTransportFailure(
        .connectionLost, "\(origin) closed the connection without a proper answer to the WebSocket upgrade.")
    case .open: RealtimeTransportFailure(.connectionLost, "The connection to \(origin) was lost.")
    }
  }
}
