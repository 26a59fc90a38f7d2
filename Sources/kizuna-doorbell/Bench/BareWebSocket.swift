import CLibwebsockets
import HostKit

/// The least a WebSocket client can do: one connection of its own, one heartbeat out, one answer in, with nothing parsed.
///
/// Created and used on one thread; its libwebsockets context is its own. The process's log hook of libwebsockets is the
/// transport's, so a transport must have connected before.
final class BareWebSocket {
  private enum Phase { case connecting, idle, sending, waiting, answered, failed }

  private let context: OpaquePointer
  private let protocols: UnsafeMutablePointer<lws_protocols>
  private var socket: OpaquePointer?
  private var phase = Phase.connecting
  private var message: [UInt8] = []
  private var answeredAt: UInt64 = 0
  private var references = 0

  /// - Parameter path: with the query.
  init(host: String, port: UInt16, path: String, isSecure: Bool) throws {
    protocols = .allocate(capacity: 2)
    protocols.initialize(repeating: lws_protocols(), count: 2)
    protocols[0].name = Self.protocolName
    protocols[0].callback = bareWebSocketCallback
    protocols[0].rx_buffer_size = 4096
    var info = lws_context_creation_info()
    info.port = CONTEXT_PORT_NO_LISTEN
    info.protocols = UnsafePointer(protocols)
    if isSecure { info.options |= UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT) }
    // Empty text keeps the environment's proxy away.
    let noProxy = Self.emptyText
    info.http_proxy_address = noProxy
    guard let context = lws_create_context(&info) else {
      protocols.deallocate()
      throw CommandFailure(.failure, "libwebsockets could not start")
    }
    self.context = context
    try connect(host: host, port: port, path: path, isSecure: isSecure)
  }

  deinit {
    lws_context_destroy(context)
    protocols.deinitialize(count: 2)
    protocols.deallocate()
  }

  // C texts that live as long as the process, because libwebsockets keeps the pointers.
  private static nonisolated(unsafe) let protocolName = copied("bare")
  private static nonisolated(unsafe) let emptyText = copied("")

  private static func copied(_ text: String) -> UnsafePointer<CChar> {
    let bytes = text.utf8CString
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    copy.initialize(from: Array(bytes), count: bytes.count)
    return UnsafePointer(copy)
  }

  private func connect(host: String, port: UInt16, path: String, isSecure: Bool) throws {
    var info = lws_client_connect_info()
    info.context = context
    info.port = Int32(port)
    if isSecure { info.ssl_connection = Int32(LCCSCF_USE_SSL.rawValue) }
    info.opaque_user_data = Unmanaged.passUnretained(self).toOpaque()
    socket = host.withCString { host in
      path.withCString { path in
        info.address = host
        info.host = host
        info.origin = host
        info.path = path
        return lws_client_connect_via_info(&info)
      }
    }
    try serve { phase == .connecting }
  }

  /// One heartbeat and its answer.
  ///
  /// - Returns: nanoseconds from asking to send until the answer is in.
  func roundTrip() throws -> UInt64 {
    references += 1
    message =
      [UInt8](repeating: 0, count: kd_lws_pre())
      + Array(#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"\#(references)"}"#.utf8)
    phase = .sending
    let start = SystemClock.monotonic
    lws_callback_on_writable(socket)
    try serve { phase == .sending || phase == .waiting }
    return answeredAt - start
  }

  private func serve(while condition: () -> Bool) throws {
    let deadline = SystemClock.monotonic + .seconds(10)
    while condition() {
      guard lws_service(context, 0) >= 0, SystemClock.monotonic < deadline else { phase = .failed; break }
    }
    if phase == .failed { throw CommandFailure(.unreachable, "the floor's WebSocket failed") }
  }

  fileprivate func handle(_ socket: OpaquePointer?, _ reason: lws_callback_reasons) -> Int32 {
    switch reason {
    case LWS_CALLBACK_CLIENT_ESTABLISHED: phase = .idle
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR, LWS_CALLBACK_CLIENT_CLOSED: phase = .failed
    case LWS_CALLBACK_CLIENT_RECEIVE where phase == .waiting:
      answeredAt = SystemClock.monotonic
      phase = .answered
    case LWS_CALLBACK_CLIENT_WRITEABLE where phase == .sending:
      let pre = kd_lws_pre()
      let count = message.count - pre
      let written = message.withUnsafeMutableBufferPointer { bytes in
        lws_write(socket, bytes.baseAddress! + pre, count, LWS_WRITE_TEXT)  // never empty, see roundTrip
      }
      phase = written == count ? .waiting : .failed
    default: break
    }
    return 0
  }
}

private func bareWebSocketCallback(
  socket: OpaquePointer?, reason: lws_callback_reasons, user: UnsafeMutableRawPointer?,
  bytes: UnsafeMutableRawPointer?, count: Int
) -> Int32 {
  guard let socket, let owner = lws_get_opaque_user_data(socket) else { return 0 }
  return Unmanaged<BareWebSocket>.fromOpaque(owner).takeUnretainedValue().handle(socket, reason)
}
