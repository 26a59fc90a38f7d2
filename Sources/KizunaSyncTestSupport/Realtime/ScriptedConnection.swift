import HostKit
import PhoenixChannels
import SupabaseRealtime

/// One attempt or connection of a `ScriptedTransport`.
final class ScriptedConnection: RealtimeTransportConnection {
  private enum Phase { case connecting, open, closing, over }

  let number: Int
  let request: RealtimeTransportRequest
  private weak let transport: ScriptedTransport?
  private let onEvent: @Sendable (RealtimeTransportEvent) -> Void
  private let phase = Locked(Phase.connecting)
  let serializer: PhoenixSerializer

  init(
    number: Int, request: RealtimeTransportRequest, transport: ScriptedTransport,
    onEvent: @escaping @Sendable (RealtimeTransportEvent) -> Void
  ) {
    self.number = number
    self.request = request
    self.transport = transport
    self.onEvent = onEvent
    serializer = PhoenixSerializer(request.url.contains("vsn=1.0.0") ? .v1 : .v2, side: .server)
  }

  var isConnecting: Bool { phase.withLock { $0 == .connecting } }
  var isOpen: Bool { phase.withLock { $0 == .open } }
  var isOver: Bool { phase.withLock { $0 == .over } }
  /// The client has asked for the end.
  var isClosing: Bool { phase.withLock { $0 == .closing } }

  // MARK: From the client

  func send(_ message: RealtimeTransportMessage) {
    guard isOpen, let transport else { return }
    transport.received(message, on: self)
  }

  func ping() {
    transport?.onThread { [self] transport in
      if isOpen, transport.state.withLock({ $0.answersHeartbeats }) { onEvent(.pong) }
    }
  }

  func close(code: UInt16, reason: String) {
    let wasLive = phase.withLock { phase -> Bool in
      guard phase == .connecting || phase == .open else { return false }
      phase = .closing
      return true
    }
    guard wasLive, let transport else { return }
    if transport.state.withLock({ $0.answersCloses }) {
      transport.onThread { transport in
        self.end(.closed(code: code, reason: reason))
        transport.advance()
      }
    } else {
      transport.clock.schedule(after: request.closeTimeout) { [weak transport] in
        transport?.onThread { transport in
          self.end(.failed(RealtimeTransportFailure(.timeout, "the peer did not answer the close")))
          transport.advance()
        }
      }
    }
  }

  // MARK: From the server, on the transport's thread

  func open() {
    let opens = phase.withLock { phase -> Bool in
      guard phase == .connecting else { return false }
      phase = .open
      return true
    }
    if opens { onEvent(.opened) }
  }

  func deliver(_ event: RealtimeTransportEvent) {
    if isOpen { onEvent(event) }
  }

  func end(_ event: RealtimeTransportEvent) {
    let ends = phase.withLock { phase -> Bool in
      defer { phase = .over }
      return phase != .over
    }
    if ends { onEvent(event) }
  }
}
