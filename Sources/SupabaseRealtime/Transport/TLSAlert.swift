import CLibwebsockets

/// Why a TLS handshake ended, in the word that either side has for it. libwebsockets does not pass it on, so OpenSSL is
/// asked to tell it. Loop thread only.
enum TLSAlert {
  /// Fatal alerts of sockets that are not over yet, by descriptor.
  private nonisolated(unsafe) static var fatal: [Int32: UInt8] = [:]  // loop thread only

  static func listen(to context: OpaquePointer) {
    SSL_CTX_set_info_callback(context) { ssl, type, value in
      // The level in the upper byte: 2 is fatal.
      guard kd_ssl_is_alert(type) != 0, value >> 8 == 2 else { return }
      TLSAlert.fatal[SSL_get_fd(ssl)] = UInt8(truncatingIfNeeded: value)
    }
  }

  /// The alert that ended the handshake on this descriptor, if one did. Told once.
  static func take(_ descriptor: Int32) -> UInt8? { fatal.removeValue(forKey: descriptor) }

  /// As the end of a sentence. Numbers are those of RFC 8446 §6.
  static func reason(_ alert: UInt8) -> String {
    switch alert {
    case 40: "no way of encrypting is known to both sides"
    case 70: "the server knows no version of TLS that is new enough (1.2 at least)"
    case 112: "the server does not know this name"
    case 116: "the server wants a certificate of the client, and there is none"
    default: String(cString: SSL_alert_desc_string_long(Int32(alert)))
    }
  }
}
