import CLibwebsockets
import Glibc
import HostKit
import SupabaseRealtime

/// One accepted connection: HTTP requests one after another, until an upgrade makes it a WebSocket.
final class StackConnection: StackWebSocket, @unchecked Sendable {  // confined to the loop thread
  private enum Mode {
    case http(HTTPRequestParser)
    /// A request is being answered; what arrives meanwhile waits.
    case answering(HTTPRequestParser)
    case webSocket(WebSocketParser)
    /// Everything that arrives is thrown away.
    case deaf
  }

  /// Bytes handed to the library at once, so that a large answer is not copied whole.
  private static let pieceBytes = 256 << 10
  private static let lingerTime: UInt64 = .seconds(2)

  let id: UInt64
  private let core: StackServerCore
  private let descriptor: Int32
  private var wsi: OpaquePointer?
  private var mode = Mode.http(HTTPRequestParser())
  private var outgoing: [[UInt8]] = []
  private var outgoingOffset = 0
  private var endsWhenSent = false
  private var lingerTimer: (any HostTimer)?
  private var isOwned = false
  private var closeSent = false

  init(_ core: StackServerCore, id: UInt64, wsi: OpaquePointer, descriptor: Int32) {
    self.core = core
    self.id = id
    self.wsi = wsi
    self.descriptor = descriptor
  }

  // MARK: In

  /// - Returns: false to end the connection at once.
  func received(_ bytes: UnsafeRawBufferPointer) -> Bool {
    switch mode {
    case .http(var parser):
      parser.add(bytes)
      mode = .http(parser)
      readRequests()
    case .answering(var parser):
      parser.add(bytes)
      mode = .answering(parser)
    case .webSocket(var parser):
      if isOwned { core.sockets.bytesArrived(on: self) }
      parser.add(bytes)
      mode = .webSocket(parser)
      readMessages()
    case .deaf: break
    }
    return true
  }

  private func readRequests() {
    while case .http(var parser) = mode {
      // The parser must not be shared while it changes, or every change copies its buffer.
      mode = .deaf
      do throws(HTTPRequestParser.Refusal) {
        let event = try parser.next()
        mode = .http(parser)
        switch event {
        case nil: return
        case .continueExpected: send(HTTPResponseEncoder.continueBytes)
        case .request(let request, let keepAlive): answer(request, keepAlive: keepAlive, parser)
        }
      } catch {
        send(
          HTTPResponseEncoder.encode(StackResponse(status: error.status), keepAlive: false, date: core.date()))
        mode = .deaf
        finish()
      }
    }
  }

  private func answer(_ request: StackRequest, keepAlive: Bool, _ parser: HTTPRequestParser) {
    mode = .answering(parser)
    if WebSocketHandshake.isOne(request), let verdict = core.sockets.upgrade(request) {
      return upgrade(request, verdict)
    }
    let handler = core.handler
    let loop = core.loop
    Task {
      let response = await handler.handle(request)
      loop.run { self.respond(response, to: request, keepAlive: keepAlive) }
    }
  }

  private func respond(_ response: StackResponse, to request: StackRequest, keepAlive: Bool) {
    guard wsi != nil, case .answering(let parser) = mode else { return }
    let isKept = keepAlive && response.headers.allSatisfy { $0.name.lowercased() != "connection" }
    send(
      HTTPResponseEncoder.encode(
        response, keepAlive: isKept, date: core.date(), omitBody: request.method == "HEAD"))
    guard isKept else {
      mode = .deaf
      return finish()
    }
    mode = .http(parser)
    readRequests()
  }

  // MARK: WebSocket

  private func upgrade(_ request: StackRequest, _ verdict: StackUpgradeVerdict) {
    switch verdict {
    case .ignore: mode = .deaf
    case .refuse(let response, let delay):
      if delay == 0 { return respond(response, to: request, keepAlive: true) }
      let loop = core.loop
      core.clock.schedule(after: delay) {
        loop.run { self.respond(response, to: request, keepAlive: true) }
      }
    case .accept(let accepted): accept(request, accepted)
    }
  }

  private func accept(_ request: StackRequest, _ accepted: UpgradeRule.Accepted) {
    guard case .answering(var parser) = mode else { return }
    guard let key = request.header("sec-websocket-key") else { return }
    send(HTTPResponseEncoder.encodeUpgrade(acceptKey: WebSocketHandshake.acceptKey(for: key), date: core.date()))
    var messages = WebSocketParser()
    messages.add(parser.takeRest())
    mode = .webSocket(messages)
    isOwned = true
    core.sockets.opened(self, as: accepted)
    readMessages()
  }

  private func readMessages() {
    while case .webSocket(var parser) = mode {
      mode = .deaf
      do throws(WebSocketParser.Violation) {
        let message = try parser.next()
        mode = .webSocket(parser)
        guard let message else { return }
        if closeSent, case .close = message {
          mode = .deaf
          return finish()
        }
        if isOwned { core.sockets.received(message, on: self) }
      } catch {
        close(code: error.rawValue, reason: "")
        mode = .deaf
        return finish()
      }
    }
  }

  func send(_ frame: WebSocketFrame) {
    if !closeSent { send(frame.encoded()) }
  }

  func close(code: UInt16?, reason: String) {
    guard !closeSent, wsi != nil else { return }
    send(WebSocketFrame.close(code: code, reason: reason).encoded())
    closeSent = true
    disown()
    linger()
  }

  /// After our answer to the peer's close frame nothing is awaited.
  func closeReceived(code: UInt16?, reason: String) {
    guard !closeSent, wsi != nil else { return }
    send(WebSocketFrame.close(code: code, reason: reason).encoded())
    closeSent = true
    mode = .deaf
    disown()
    finish()
  }

  func drop(reset: Bool) {
    if reset {
      var atOnce = CLibwebsockets.linger(l_onoff: 1, l_linger: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &atOnce, socklen_t(MemoryLayout.size(ofValue: atOnce)))
    }
    disown()
    kill()
  }

  private func disown() {
    guard isOwned else { return }
    isOwned = false
    core.sockets.closed(self)
  }

  // MARK: Out

  private func send(_ bytes: [UInt8]) {
    guard wsi != nil, !bytes.isEmpty, !endsWhenSent else { return }
    outgoing.append(bytes)
    if outgoing.count == 1 { flush() }
  }

  /// Writes what the kernel takes now; the rest follows when it is writable again.
  private func flush() {
    guard let wsi else { return }
    while let first = outgoing.first, lws_partial_buffered(wsi) == 0, lws_send_pipe_choked(wsi) == 0 {
      let count = min(first.count - outgoingOffset, Self.pieceBytes)
      let written = first.withUnsafeBytes { bytes in
        // On a raw socket this is a plain write; the library only reads from the buffer.
        lws_write(
          wsi, UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress! + outgoingOffset), count,
          LWS_WRITE_HTTP)
      }
      if written < 0 { return kill() }
      outgoingOffset += count
      if outgoingOffset == first.count {
        outgoing.removeFirst()
        outgoingOffset = 0
      }
    }
    if !outgoing.isEmpty || lws_partial_buffered(wsi) != 0 {
      lws_callback_on_writable(wsi)
    } else if endsWhenSent {
      // The peer reads to the end before it sees ours; closing with unread input would take that away from it.
      shutdown(descriptor, Int32(SHUT_WR))
      linger()
    }
  }

  func writable() -> Bool {
    flush()
    return true
  }

  // MARK: Ending

  /// Ends the connection once everything is sent.
  private func finish() {
    endsWhenSent = true
    flush()
  }

  private func linger() {
    guard lingerTimer == nil else { return }
    let loop = core.loop
    lingerTimer = core.clock.schedule(after: Self.lingerTime) { [weak self] in
      guard let connection = self else { return }
      loop.run { connection.kill() }
    }
  }

  private func kill() {
    guard let wsi else { return }
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
  }

  func serverStops() {
    disown()
    lingerTimer?.cancel()
  }

  /// The socket is gone.
  func destroyed() {
    wsi = nil
    lingerTimer?.cancel()
    disown()
    core.forget(self)
  }
}
