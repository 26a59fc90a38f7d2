import CLibwebsockets
import Glibc

/// The libwebsockets objects that client connections share: one vhost for each kind of connection, made when first
/// needed and kept. Loop thread only.
struct LwsClientHost {
  static let protocolName = "kizuna-client"

  private struct Kind: Hashable {
    let trustRoots: LibwebsocketsTransport.TrustRoots?
    let keepAlive: LibwebsocketsTransport.KeepAlive
  }
  private var vhosts: [Kind: OpaquePointer] = [:]

  /// - Parameter trustRoots: nil for plain sockets.
  /// - Throws: a TLS failure when the trust roots cannot be read, otherwise a lack of memory.
  mutating func vhost(
    _ context: OpaquePointer, _ trustRoots: LibwebsocketsTransport.TrustRoots?,
    _ keepAlive: LibwebsocketsTransport.KeepAlive
  ) throws(RealtimeTransportFailure) -> OpaquePointer {
    let kind = Kind(trustRoots: trustRoots, keepAlive: keepAlive)
    if let known = vhosts[kind] { return known }
    var tls: OpaquePointer?
    if let trustRoots { tls = try Self.makeTLSContext(trustRoots) }
    guard let vhost = Self.makeVhost(context, tls: tls, keepAlive) else {
      if let tls { SSL_CTX_free(tls) }
      throw RealtimeTransportFailure(.other, "libwebsockets could not prepare a connection.")
    }
    vhosts[kind] = vhost
    return vhost
  }

  private static func makeVhost(
    _ context: OpaquePointer, tls: OpaquePointer?, _ keepAlive: LibwebsocketsTransport.KeepAlive
  ) -> OpaquePointer? {
    var info = lws_context_creation_info()
    info.port = Int32(CONTEXT_PORT_NO_LISTEN)
    info.protocols = UnsafePointer(protocols)
    // An empty proxy address keeps libwebsockets from reading http_proxy; tunnels are opened before it is asked.
    info.http_proxy_address = UnsafePointer(emptyText)
    info.connect_timeout_secs = 86_400
    info.ka_time = keepAlive.idleSeconds
    info.ka_interval = keepAlive.intervalSeconds
    info.ka_probes = keepAlive.probes
    if let tls {
      info.options |= UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT)
      info.provided_client_ssl_ctx = tls
    }
    return lws_create_vhost(context, &info)
  }

  /// Our own OpenSSL context: the one libwebsockets makes accepts old TLS versions and adds a relative directory to the
  /// trusted ones.
  private static func makeTLSContext(
    _ roots: LibwebsocketsTransport.TrustRoots
  ) throws(RealtimeTransportFailure) -> OpaquePointer {
    guard let tls = SSL_CTX_new(TLS_client_method()) else {
      throw RealtimeTransportFailure(.tls, "OpenSSL could not be started.")
    }
    kd_ssl_ctx_set_modes(tls)
    TLSAlert.listen(to: tls)
    let minimum = kd_ssl_ctx_require_tls12(tls)
    var unreadable: String?
    if SSL_CTX_set_default_verify_paths(tls) != 1 { unreadable = "of the system" }
    if case .systemAnd(let file) = roots, SSL_CTX_load_verify_file(tls, file) != 1 { unreadable = "in \(file)" }
    guard minimum == 1, unreadable == nil else {
      ERR_clear_error()
      SSL_CTX_free(tls)
      throw RealtimeTransportFailure(.tls, "The certificate authorities \(unreadable ?? "") could not be read.")
    }
    return tls
  }

  // MARK: Constants that libwebsockets keeps pointers to

  // Written once before use, never freed.
  private nonisolated(unsafe) static let emptyText = strdup("")!
  private nonisolated(unsafe) static let protocols: UnsafeMutablePointer<lws_protocols> = {
    let table = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
    table.initialize(repeating: lws_protocols(), count: 2)
    table[0].name = UnsafePointer(strdup(protocolName))
    table[0].callback = lwsClientCallback
    table[0].rx_buffer_size = 16_384
    return table
  }()

  /// Switches off the pings and hang-ups that libwebsockets would schedule on its own every five minutes.
  nonisolated(unsafe) static let noIdlePolicy: UnsafeMutablePointer<lws_retry_bo_t> = {
    let policy = UnsafeMutablePointer<lws_retry_bo_t>.allocate(capacity: 1)
    policy.initialize(to: lws_retry_bo_t())
    return policy
  }()
}
