import CLibwebsockets
import HostKit

/// One client WebSocket, from the attempt to its end. Everything here runs on the loop thread.
///
/// The socket handle is made in `open` and given up in `destroyed`, the last call libwebsockets makes for it. The final
/// event leaves in `finish` and nowhere else.
final class LwsClientConnection: RealtimeTransportConnection, @unchecked Sendable {  // confined to the loop thread
  struct Environment: Sendable {
    let loop: LwsLoop
    let trustRoots: LibwebsocketsTransport.TrustRoots
    let proxy: ProxyRule
    let limits: LibwebsocketsTransport.Limits
    let clock: any HostClock
    let refusalReader: RefusalReader
    let lookUp: AddressLookups.LookUp
  }

  /// What all connections of the loop share.
  struct Shared {
    var host = LwsClientHost()
    var addresses = AddressMemory()
    var lookups = AddressLookups()
  }
  nonisolated(unsafe) static var shared = Shared()  // loop thread only

  let environment: Environment
  let request: RealtimeTransportRequest
  private var onEvent: (@Sendable (RealtimeTransportEvent) -> Void)?
  var target: ConnectionTarget?
  var record: AttemptRecord
  private var assembler: MessageAssembler
  private var queue: SendQueue
  private var wsi: OpaquePointer?
  private var address: AddressResolver.Address?
  private var hasSocket = false
  private var descriptor: Int32?
  /// While a proxy is asked for one.
  var tunnel: ProxyTunnel?
  /// From the proxy's answer until libwebsockets has it.
  var tunnelDescriptor: Int32?
  private var handshakeTimer: (any HostTimer)?
  private var writeTimer: (any HostTimer)?
  private var closeTimer: (any HostTimer)?
  private var refusalTask: Task<Void, Never>?
  var refusalBytes: [UInt8] = []
  private var closeFrameQueued = false

  init(
    _ environment: Environment, request: RealtimeTransportRequest,
    onEvent: @escaping @Sendable (RealtimeTransportEvent) -> Void
  ) {
    self.environment = environment
    self.request = request
    self.onEvent = onEvent
    record = AttemptRecord(origin: "the Realtime server")
    queue = SendQueue(
      maximumBytes: environment.limits.sendQueueBytes, maximumItems: environment.limits.sendQueueMessages)
    assembler = MessageAssembler(limit: request.maximumMessageBytes, ceiling: request.endlessMessageBytes)
  }

  var isFinished: Bool { onEvent == nil }
  /// Nothing has ended the attempt yet.
  var isUndecided: Bool { !isFinished && record.failure == nil && record.requestedClose == nil }

  // MARK: Port

  func send(_ message: RealtimeTransportMessage) {
    environment.loop.checkIsolated()
    enqueue(.message(message))
  }

  func ping() {
    environment.loop.checkIsolated()
    if record.phase == .open { enqueue(.ping) }
  }

  func close(code: UInt16, reason: String) {
    environment.loop.checkIsolated()
    guard !isFinished, record.requestedClose == nil else { return }
    record.requestedClose = AttemptRecord.Close(code: code, reason: reason)
    guard record.phase == .open, let wsi else { return abandon() }
    closeTimer = deadline(request.closeTimeout) { $0.abandon() }
    lws_callback_on_writable(wsi)
  }

  private func enqueue(_ item: SendQueue.Item) {
    guard !isFinished, record.requestedClose == nil else { return }
    let isWaiting = !queue.isEmpty
    guard queue.add(item) else {
      return fail(
        RealtimeTransportFailure(
          .connectionLost, "\(record.origin) takes no data: \(queue.byteCount) bytes were waiting to be sent."))
    }
    guard record.phase == .open, let wsi else { return }
    if isWaiting { armWriteTimer() }
    lws_callback_on_writable(wsi)
  }

  // MARK: Beginning

  func begin() {
    guard !isFinished else { return }
    if record.requestedClose != nil { return finish() }
    do throws(RealtimeTransportFailure) {
      let target = try ConnectionTarget(request, proxies: environment.proxy)
      self.target = target
      record = AttemptRecord(origin: target.url.origin, proxy: target.proxy?.label)
      handshakeTimer = deadline(request.handshakeTimeout) { $0.handshakeTimedOut() }
      find(target)
    } catch {
      record.failure = error
      finish()
    }
  }

  func reach(_ target: ConnectionTarget, at address: AddressResolver.Address) {
    record.phase = .connecting
    self.address = address
    if let proxy = target.proxy {
      openTunnel(target, through: proxy, at: address)
    } else {
      open(target, at: address.text)
    }
  }

  /// - Parameter address: what libwebsockets connects to.
  func open(_ target: ConnectionTarget, at address: String) {
    do throws(RealtimeTransportFailure) {
      guard let context = environment.loop.context() else {
        throw RealtimeTransportFailure(.other, "libwebsockets could not be started.")
      }
      let trustRoots = target.url.isSecure ? environment.trustRoots : nil
      start(context, try Self.shared.host.vhost(context, trustRoots, environment.limits.keepAlive), target, address)
    } catch {
      record.failure = error
      finish()
    }
  }

  private func start(
    _ context: OpaquePointer, _ vhost: OpaquePointer, _ target: ConnectionTarget, _ address: String
  ) {
    hasSocket = true
    environment.loop.socketBegan()
    var info = lws_client_connect_info()
    info.context = context
    info.vhost = vhost
    info.port = Int32(target.url.port)
    info.ssl_connection = Int32(LCCSCF_HTTP_NO_FOLLOW_REDIRECT.rawValue)
    if target.url.isSecure { info.ssl_connection |= Int32(LCCSCF_USE_SSL.rawValue) }
    info.retry_and_idle_policy = UnsafePointer(LwsClientHost.noIdlePolicy)
    info.opaque_user_data = Unmanaged.passRetained(self).toOpaque()
    let made = address.withCString { addressText in
      target.url.target.withCString { path in
        target.url.hostHeader.withCString { host in
          LwsClientHost.protocolName.withCString { name in
            "http/1.1".withCString { alpn -> OpaquePointer? in
              info.address = addressText
              info.path = path
              info.host = host
              info.local_protocol_name = name
              info.alpn = alpn
              return lws_client_connect_via_info(&info)
            }
          }
        }
      }
    }
    if let made {
      guard hasSocket else { return }
      wsi = made
      if record.failure != nil || record.requestedClose != nil { abandon() }
    } else if hasSocket {
      // It failed before there was a socket that could be destroyed.
      destroyed()
    }
  }

  // MARK: What libwebsockets reports

  func connected(_ wsi: OpaquePointer) {
    guard let target, record.phase < .securing else { return }
    if target.proxy != nil { enterTunnel(wsi) }
    descriptor = lws_get_socket_fd(wsi)
    record.phase = target.url.isSecure ? .securing : .upgrading
  }

  func certificateRefused(_ problem: String) {
    record.certificateProblem = problem
  }

  func opened() {
    record.phase = .open
    if let target, let address, AddressResolver.literal(target.peerHost) == nil {
      Self.shared.addresses.remember(
        address, for: target.peerLabel, until: environment.clock.now + environment.limits.addressLifetime)
    }
    handshakeTimer?.cancel()
    handshakeTimer = nil
    emit(.opened)
    if !queue.isEmpty, let wsi { lws_callback_on_writable(wsi) }
  }

  func received(_ wsi: OpaquePointer, _ piece: UnsafeRawBufferPointer) {
    let output = assembler.add(
      piece, isFirst: lws_is_first_fragment(wsi) != 0, isLast: lws_is_final_fragment(wsi) != 0,
      isBinary: lws_frame_is_binary(wsi) != 0)
    switch output {
    case .message(let message): emit(.message(message, receivedAt: SystemClock.monotonic))
    case .tooLarge(let bytes): emit(.messageTooLarge(bytes: bytes))
    case .endless: endlessMessage()
    case nil: break
    }
  }

  private func endlessMessage() {
    guard record.failure == nil else { return }
    record.failure = record.endlessMessage(after: max(request.endlessMessageBytes, request.maximumMessageBytes))
    close(code: 1009, reason: "message too big")
  }

  func pongReceived() {
    emit(.pong)
  }

  func peerClosed(_ payload: UnsafeRawBufferPointer) {
    guard payload.count >= 2 else {
      record.peerClose = AttemptRecord.Close(code: nil, reason: "")
      return
    }
    // libwebsockets 4.1 rewrites 1012, which a Realtime server sends whenever it is deployed, and every code that is
    // none into 1002 before it tells us. So what was meant is not known.
    let told = UInt16(payload[0]) << 8 | UInt16(payload[1])
    let code = told == 1002 ? nil : told
    record.peerClose = AttemptRecord.Close(
      code: code, reason: String(decoding: payload.dropFirst(2), as: UTF8.self))
  }

  /// The kernel takes data.
  /// - Returns: -1 to make libwebsockets send the close frame it was given.
  func writable(_ wsi: OpaquePointer) -> Int32 {
    guard !closeFrameQueued else { return 0 }
    while let item = queue.next() {
      if LwsWriter.write(item, to: wsi) < 0 { return -1 }
      if lws_send_pipe_choked(wsi) != 0 { break }
    }
    if !queue.isEmpty || lws_partial_buffered(wsi) != 0 {
      armWriteTimer()
      lws_callback_on_writable(wsi)
      return 0
    }
    writeTimer?.cancel()
    writeTimer = nil
    guard let close = record.requestedClose else { return 0 }
    closeFrameQueued = true
    var reason = Array(close.reason.utf8.prefix(123))
    lws_close_reason(wsi, lws_close_status(rawValue: UInt32(close.code ?? 1000)), &reason, reason.count)
    return -1
  }

  /// The last call of libwebsockets for this socket.
  func destroyed() {
    guard hasSocket else { return }
    hasSocket = false
    wsi = nil
    environment.loop.socketEnded()
    if let alert = descriptor.flatMap(TLSAlert.take), record.phase == .securing {
      record.handshakeProblem = TLSAlert.reason(alert)
    }
    if record.phase < .open { forgetAddress() }
    // Balances the retain of `start`; the caller still holds a reference for the time of this call.
    defer { Unmanaged.passUnretained(self).release() }
    guard let refusal = record.refusal, record.failure == nil, record.requestedClose == nil,
      environment.refusalReader.isNeeded(status: refusal.status, body: refusal.body)
    else { return finish() }
    handshakeTimer?.cancel()
    refusalTask = Task { [environment, request] in
      let body = await environment.refusalReader.body(of: request, status: refusal.status)
      environment.loop.run {
        self.record.refusal?.body = body
        self.finish()
      }
    }
  }

  // MARK: Deadlines

  private func deadline(
    _ nanoseconds: UInt64, _ passed: @escaping @Sendable (LwsClientConnection) -> Void
  ) -> any HostTimer {
    let loop = environment.loop
    return environment.clock.schedule(after: nanoseconds) { [weak self] in
      guard let connection = self else { return }
      loop.run { if !connection.isFinished { passed(connection) } }
    }
  }

  private func armWriteTimer() {
    writeTimer?.cancel()
    writeTimer = deadline(request.writeTimeout) { connection in
      guard connection.writeTimer != nil else { return }
      let seconds = connection.request.writeTimeout / 1_000_000_000
      connection.fail(
        RealtimeTransportFailure(.timeout, "\(connection.record.origin) took no data for \(seconds) s."))
    }
  }

  private func handshakeTimedOut() {
    guard handshakeTimer != nil, record.phase < .open else { return }
    fail(record.handshakeTimeout(after: request.handshakeTimeout))
  }

  // MARK: Ending

  func fail(_ failure: RealtimeTransportFailure) {
    guard !isFinished, record.failure == nil else { return }
    record.failure = failure
    abandon()
  }

  /// Cuts the socket, if there is one, without a word to the peer.
  private func abandon() {
    guard let wsi, hasSocket else {
      // A socket that is just being made is cut when `start` returns; resolution and refusal texts are not waited for.
      refusalTask?.cancel()
      return hasSocket ? () : finishSoon()
    }
    // Asynchronous, because this may be running inside a callback of the same socket.
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
  }

  /// Final events never come from inside a call of the owner.
  private func finishSoon() {
    environment.loop.run { self.finish() }
  }

  func finish() {
    guard let onEvent else { return }
    handshakeTimer?.cancel()
    writeTimer?.cancel()
    closeTimer?.cancel()
    (handshakeTimer, writeTimer, closeTimer) = (nil, nil, nil)
    if let target { Self.shared.lookups.giveUp(on: target.peerHost, self) }
    tunnel?.cancel()
    queue.removeAll()
    refusalTask = nil
    self.onEvent = nil
    onEvent(record.finalEvent())
  }

  private func emit(_ event: RealtimeTransportEvent) {
    onEvent?(event)
  }
}
