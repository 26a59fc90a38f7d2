import CLibwebsockets

/// The one function libwebsockets calls for client sockets: finds the connection and hands the event on.
///
/// It lives in a file of its own because a closure at the top level of `main.swift` would belong to the main actor.
func lwsClientCallback(
  wsi: OpaquePointer?, reason: lws_callback_reasons, user: UnsafeMutableRawPointer?,
  input: UnsafeMutableRawPointer?, length: Int
) -> Int32 {
  switch reason {
  case LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION:
    // Here `user` is OpenSSL's verification context and `length` its verdict so far.
    if length == 0, let connection = connection(of: wsi), let user {
      let code = X509_STORE_CTX_get_error(OpaquePointer(user))
      connection.certificateRefused(String(cString: X509_verify_cert_error_string(Int(code))))
    }
    return 0
  case LWS_CALLBACK_WSI_CREATE:
    guard let wsi else { return 0 }
    connection(of: wsi)?.connected(wsi)
  case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
    guard let wsi, let input else { return 0 }
    return connection(of: wsi)?.addHeaders(wsi, to: input, room: length) ?? 0
  case LWS_CALLBACK_ESTABLISHED_CLIENT_HTTP:
    guard let wsi else { return 0 }
    return connection(of: wsi)?.answered(wsi) ?? 0
  case LWS_CALLBACK_RECEIVE_CLIENT_HTTP_READ:
    connection(of: wsi)?.refusalText(UnsafeRawBufferPointer(start: input, count: length))
  case LWS_CALLBACK_CLIENT_ESTABLISHED: connection(of: wsi)?.opened()
  case LWS_CALLBACK_CLIENT_RECEIVE:
    guard let wsi else { return 0 }
    connection(of: wsi)?.received(wsi, UnsafeRawBufferPointer(start: input, count: length))
  case LWS_CALLBACK_CLIENT_RECEIVE_PONG: connection(of: wsi)?.pongReceived()
  case LWS_CALLBACK_CLIENT_WRITEABLE:
    guard let wsi else { return 0 }
    return connection(of: wsi)?.writable(wsi) ?? 0
  case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
    connection(of: wsi)?.peerClosed(UnsafeRawBufferPointer(start: input, count: length))
  case LWS_CALLBACK_WSI_DESTROY: connection(of: wsi)?.destroyed()
  default: break
  }
  return 0
}

/// Only for reasons that concern a real socket; libwebsockets passes a half-made one with others.
private func connection(of wsi: OpaquePointer?) -> LwsClientConnection? {
  guard let wsi, let pointer = lws_get_opaque_user_data(wsi) else { return nil }
  // Retained from before the socket exists until `destroyed()`.
  return Unmanaged<LwsClientConnection>.fromOpaque(pointer).takeUnretainedValue()
}
