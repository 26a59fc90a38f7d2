import HostKit
import Testing

@testable import SupabaseRealtime

/// A connection of the real transport, with its events as a stream and its calls made from any thread.
final class TransportProbe: Sendable {
  let events: AsyncStream<RealtimeTransportEvent>
  private let transport: LibwebsocketsTransport
  private let connection = Locked<(any RealtimeTransportConnection)?>(nil)
  private let seen = Locked<[RealtimeTransportEvent]>([])

  init(_ request: RealtimeTransportRequest, over transport: LibwebsocketsTransport = LibwebsocketsTransport()) {
    self.transport = transport
    let (events, continuation) = AsyncStream.makeStream(of: RealtimeTransportEvent.self)
    self.events = events
    LwsLoop.shared.run { [self] in
      let made = transport.connect(request) { [seen] event in
        LwsLoop.shared.checkIsolated()
        seen.withLock { $0.append(event) }
        continuation.yield(event)
        if event.isFinal { continuation.finish() }
      }
      connection.withLock { $0 = made }
    }
  }

  /// With a short close deadline, because most scripted peers do not answer a close, and time enough for a handshake on a
  /// machine that does much else.
  convenience init(_ url: String) {
    self.init(
      RealtimeTransportRequest(url: url, handshakeTimeout: .seconds(60), closeTimeout: .milliseconds(100)))
  }

  func call(_ body: @escaping @Sendable (any RealtimeTransportConnection) -> Void) {
    LwsLoop.shared.run { [self] in
      guard let connection = connection.withLock({ $0 }) else { return }
      body(connection)
    }
  }

  func send(_ text: String) { call { $0.send(.text(text)) } }
  func close(code: UInt16 = 1000, reason: String = "") { call { $0.close(code: code, reason: reason) } }

  /// The next event, receive times taken out; nil after the final one.
  func next() async -> RealtimeTransportEvent? {
    for await event in events { return event.withoutTime }
    return nil
  }

  /// All events that are left, up to the final one.
  func rest() async -> [RealtimeTransportEvent] {
    var result: [RealtimeTransportEvent] = []
    for await event in events { result.append(event.withoutTime) }
    return result
  }
}

extension RealtimeTransportEvent {
  var isFinal: Bool {
    switch self {
    case .refused, .failed, .closed: true
    default: false
    }
  }

  var withoutTime: RealtimeTransportEvent {
    if case .message(let message, _) = self { .message(message, receivedAt: 0) } else { self }
  }

  static func text(_ text: String) -> RealtimeTransportEvent { .message(.text(text), receivedAt: 0) }
  static func binary(_ bytes: [UInt8]) -> RealtimeTransportEvent { .message(.binary(bytes), receivedAt: 0) }

  var failureKind: RealtimeTransportFailure.Kind? {
    if case .failed(let failure) = self { failure.kind } else { nil }
  }
}
