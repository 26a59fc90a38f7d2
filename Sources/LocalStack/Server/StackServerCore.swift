import CLibwebsockets
import CLinux
import Glibc
import HostKit
import SupabaseRealtime

/// The part of the server that lives on the loop thread: the vhost, the listening socket and the connections.
final class StackServerCore: @unchecked Sendable {  // confined to the loop thread
  let loop: LwsLoop
  let clock: any HostClock
  let handler: any StackHandler
  let sockets: any StackSocketOwner
  private let certificate: String?
  private let key: String?
  private var vhost: OpaquePointer?
  private var connections: [ObjectIdentifier: StackConnection] = [:]
  private var nextID: UInt64 = 1
  private var isListening = false
  private var cachedDate: (second: Int64, text: String) = (-1, "")

  init(
    loop: LwsLoop, clock: any HostClock, handler: any StackHandler, sockets: any StackSocketOwner,
    certificate: String?, key: String?
  ) {
    self.loop = loop
    self.clock = clock
    self.handler = handler
    self.sockets = sockets
    self.certificate = certificate
    self.key = key
  }

  func listen(on descriptor: Int32) -> StackServerError? {
    guard let context = loop.context(), let vhost = makeVhost(context) else {
      close(descriptor)
      return certificate.map { .certificate($0) } ?? .library
    }
    self.vhost = vhost
    var file = lws_sock_file_fd_type()
    file.filefd = descriptor
    guard let listener = lws_adopt_descriptor_vhost(vhost, LWS_ADOPT_RAW_FILE_DESC, file, StackLibrary.name, nil)
    else {
      close(descriptor)
      return .library
    }
    // Balanced in `listenerDestroyed`.
    lws_set_opaque_user_data(listener, Unmanaged.passRetained(StackListenerBox(self)).toOpaque())
    isListening = true
    loop.socketBegan()
    return nil
  }

  private func makeVhost(_ context: OpaquePointer) -> OpaquePointer? {
    var info = lws_context_creation_info()
    info.port = Int32(CONTEXT_PORT_NO_LISTEN_SERVER)
    info.protocols = UnsafePointer(StackLibrary.protocols)
    info.http_proxy_address = UnsafePointer(StackLibrary.emptyText)
    // Otherwise it would offer HTTP/2 in the handshake.
    info.alpn = UnsafePointer(StackLibrary.http1)
    guard let certificate, let key else { return lws_create_vhost(context, &info) }
    info.options =
      UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT) | UInt64(LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX)
    return certificate.withCString { certificate in
      key.withCString { key in
        info.ssl_cert_filepath = certificate
        info.ssl_private_key_filepath = key
        return lws_create_vhost(context, &info)
      }
    }
  }

  /// Connections wait at the listening socket.
  func acceptAll(_ listener: Int32) {
    guard let vhost else { return }
    while true {
      let descriptor = kd_accept_closed_on_exec(listener)
      guard descriptor >= 0 else { return }
      var one: Int32 = 1
      setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
      var socket = lws_sock_file_fd_type()
      socket.sockfd = descriptor
      let type = lws_adoption_type(
        rawValue: LWS_ADOPT_SOCKET.rawValue | (certificate == nil ? 0 : LWS_ADOPT_ALLOW_SSL.rawValue))
      guard let wsi = lws_adopt_descriptor_vhost(vhost, type, socket, StackLibrary.name, nil) else { continue }
      let connection = StackConnection(self, id: nextID, wsi: wsi, descriptor: descriptor)
      nextID += 1
      connections[ObjectIdentifier(connection)] = connection
      loop.socketBegan()
      // Balanced in `forget`.
      lws_set_opaque_user_data(wsi, Unmanaged.passRetained(StackConnectionBox(connection)).toOpaque())
    }
  }

  func forget(_ connection: StackConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    loop.socketEnded()
  }

  func listenerDestroyed() {
    if isListening { loop.socketEnded() }
    isListening = false
  }

  /// The loop destroys the context, and with it all sockets, right after.
  func stop() {
    for connection in connections.values { connection.serverStops() }
  }

  /// The `date` header, made once a second.
  func date() -> String {
    let now = clock.wallMilliseconds
    if cachedDate.second != now / 1_000 { cachedDate = (now / 1_000, HTTPDate.text(milliseconds: now)) }
    return cachedDate.text
  }
}

/// What the opaque pointer of a socket leads to.
class StackBox {}

final class StackListenerBox: StackBox {
  let core: StackServerCore
  init(_ core: StackServerCore) { self.core = core }
}

final class StackConnectionBox: StackBox {
  let connection: StackConnection
  init(_ connection: StackConnection) { self.connection = connection }
}

/// Constants that libwebsockets keeps pointers to; written once before use, never freed.
enum StackLibrary {
  static let name = "kizuna-stack"
  nonisolated(unsafe) static let emptyText = strdup("")!
  nonisolated(unsafe) static let http1 = strdup("http/1.1")!
  nonisolated(unsafe) static let protocols: UnsafeMutablePointer<lws_protocols> = {
    let table = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
    table.initialize(repeating: lws_protocols(), count: 2)
    table[0].name = UnsafePointer(strdup(name))
    table[0].callback = stackServerCallback
    return table
  }()
}

/// The one function libwebsockets calls for the server's sockets.
func stackServerCallback(
  wsi: OpaquePointer?, reason: lws_callback_reasons, user: UnsafeMutableRawPointer?,
  input: UnsafeMutableRawPointer?, length: Int
) -> Int32 {
  switch reason {
  case LWS_CALLBACK_RAW_RX_FILE:
    if let wsi, let listener = stackBox(of: wsi) as? StackListenerBox {
      listener.core.acceptAll(lws_get_socket_fd(wsi))
    }
  case LWS_CALLBACK_RAW_RX:
    guard let wsi, let box = stackBox(of: wsi) as? StackConnectionBox else { return 0 }
    return box.connection.received(UnsafeRawBufferPointer(start: input, count: length)) ? 0 : -1
  case LWS_CALLBACK_RAW_WRITEABLE:
    guard let wsi, let box = stackBox(of: wsi) as? StackConnectionBox else { return 0 }
    return box.connection.writable() ? 0 : -1
  case LWS_CALLBACK_WSI_DESTROY:
    guard let wsi, let pointer = lws_get_opaque_user_data(wsi) else { return 0 }
    lws_set_opaque_user_data(wsi, nil)
    // Retained when the pointer was set; this is the last callback of a socket.
    let box = Unmanaged<StackBox>.fromOpaque(pointer).takeRetainedValue()
    (box as? StackConnectionBox)?.connection.destroyed()
    (box as? StackListenerBox)?.core.listenerDestroyed()
  default: break
  }
  return 0
}

private func stackBox(of wsi: OpaquePointer) -> StackBox? {
  guard let pointer = lws_get_opaque_user_data(wsi) else { return nil }
  return Unmanaged<StackBox>.fromOpaque(pointer).takeUnretainedValue()
}
