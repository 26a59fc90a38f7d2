import HostKit
import PhoenixChannels
import SupabaseRealtime

@testable import LocalStack

/// A real WebSocket client of a Realtime server, which sends and receives frames.
final class HubClient: Sendable {
  enum Event: Sendable, Equatable {
    case opened
    case frame(PhoenixFrame)
    case pong
    /// The kind of end and its number, for example `closed 1000` or `refused 401`.
    case ended(String)
  }

  private let serializer: PhoenixSerializer
  private let connection = Locked<(any RealtimeTransportConnection)?>(nil)
  private let events: AsyncStream<Event>
  private let transport: LibwebsocketsTransport

  convenience init(
    _ stack: StackAssembly, _ version: PhoenixVersion = .v2, key: String = PlainVerifier.token(role: "anon"),
    path: String = "/realtime/v1/websocket"
  ) {
    self.init("ws://127.0.0.1:\(stack.server.port)\(path)", version, key: key)
  }

  init(
    _ address: String, _ version: PhoenixVersion, key: String,
    over transport: LibwebsocketsTransport = LibwebsocketsTransport()
  ) {
    self.transport = transport
    let serializer = PhoenixSerializer(version)
    self.serializer = serializer
    let (events, continuation) = AsyncStream.makeStream(of: Event.self)
    self.events = events
    let url = "\(address)?apikey=\(PercentCoding.encode(key))&vsn=\(version.rawValue)"
    LwsLoop.shared.run { [self] in
      let made = transport.connect(RealtimeTransportRequest(url: url)) { event in
        switch event {
        case .opened: continuation.yield(.opened)
        case .message(.text(let text), _):
          if let frame = try? serializer.decode(.text(text)) { continuation.yield(.frame(frame)) }
        case .message(.binary(let bytes), _):
          if let frame = try? serializer.decode(.binary(bytes)) { continuation.yield(.frame(frame)) }
        case .pong: continuation.yield(.pong)
        case .messageTooLarge: break
        case .closed(let code, _): continuation.yield(.ended("closed \(code.map(String.init) ?? "-")"))
        case .refused(let status, _, let body):
          continuation.yield(.ended("refused \(status)\(body.map { " " + $0 } ?? "")"))
        case .failed(let failure): continuation.yield(.ended("failed \(failure.kind.rawValue)"))
        }
      }
      connection.withLock { $0 = made }
    }
  }

  func send(_ frame: PhoenixFrame) {
    guard let message = try? serializer.encode(frame) else { return }
    call { connection in
      switch message {
      case .text(let text): connection.send(.text(text))
      case .binary(let bytes): connection.send(.binary(bytes))
      }
    }
  }

  func sendRaw(_ message: RealtimeTransportMessage) { call { $0.send(message) } }
  func ping() { call { $0.ping() } }
  func close() { call { $0.close(code: 1000, reason: "") } }

  private func call(_ body: @escaping @Sendable (any RealtimeTransportConnection) -> Void) {
    LwsLoop.shared.run { [self] in
      if let connection = connection.withLock({ $0 }) { body(connection) }
    }
  }

  func next() async -> Event? {
    for await event in events { return event }
    return nil
  }

  func frame() async -> PhoenixFrame? {
    if case .frame(let frame) = await next() { frame } else { nil }
  }

  func join(
    _ topic: String, ref: String = "1", isPrivate: Bool = true, token: String? = PlainVerifier.token(),
    broadcast: JSONValue = ["ack": false, "self": false]
  ) {
    var payload: [String: JSONValue] = [
      "config": [
        "broadcast": broadcast, "presence": ["enabled": false], "postgres_changes": [], "private": .bool(isPrivate),
      ]
    ]
    if let token { payload["access_token"] = .string(token) }
    send(PhoenixFrame(joinRef: ref, ref: ref, topic: topic, event: "phx_join", .object(payload)))
  }

  /// Joins and waits for the answer.
  func joined(_ topic: String, ref: String = "1", isPrivate: Bool = true, broadcast: JSONValue = [:]) async -> Bool {
    join(topic, ref: ref, isPrivate: isPrivate, broadcast: broadcast)
    return await frame()?.replyStatus == "ok"
  }
}
