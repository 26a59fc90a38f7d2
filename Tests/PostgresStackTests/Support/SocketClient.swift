#if Postgres
  import HostKit
  import PhoenixChannels
  import SupabaseRealtime

  /// A WebSocket client of a Realtime server, which sends and receives frames.
  final class SocketClient: Sendable {
    private let serializer = PhoenixSerializer(.v2)
    private let connection = Locked<(any RealtimeTransportConnection)?>(nil)
    private let frames: AsyncStream<PhoenixFrame>
    private let transport = LibwebsocketsTransport()

    /// Connects; what is sent before it is open waits.
    init(_ address: String, key: String) async {
      let (frames, continuation) = AsyncStream.makeStream(of: PhoenixFrame.self)
      self.frames = frames
      let url = "\(address)?apikey=\(PercentCoding.encode(key))&vsn=2.0.0"
      let (opened, open) = AsyncStream.makeStream(of: Void.self)
      LwsLoop.shared.run { [self] in
        let made = transport.connect(RealtimeTransportRequest(url: url)) { [serializer] event in
          switch event {
          case .opened: open.finish()
          case .message(.text(let text), _):
            if let frame = try? serializer.decode(.text(text)) { continuation.yield(frame) }
          case .message(.binary(let bytes), _):
            if let frame = try? serializer.decode(.binary(bytes)) { continuation.yield(frame) }
          case .pong, .messageTooLarge: break
          case .closed, .refused, .failed:
            open.finish()
            continuation.finish()
          }
        }
        connection.withLock { $0 = made }
      }
      for await _ in opened {}
    }

    func send(_ frame: PhoenixFrame) {
      guard let message = try? serializer.encode(frame) else { return }
      LwsLoop.shared.run { [self] in
        guard let connection = connection.withLock({ $0 }) else { return }
        switch message {
        case .text(let text): connection.send(.text(text))
        case .binary(let bytes): connection.send(.binary(bytes))
        }
      }
    }

    func close() {
      LwsLoop.shared.run { [self] in connection.withLock { $0 }?.close(code: 1000, reason: "") }
    }

    func frame() async -> PhoenixFrame? {
      for await frame in frames { return frame }
      return nil
    }

    /// The `t` of the next broadcast's payload.
    func ring() async -> JSONValue? {
      while let frame = await frame() {
        if case .broadcast = frame.payload { return frame.json?["payload"] }
      }
      return nil
    }

    /// Joins a private topic.
    /// - Returns: `ok`, or the reason of the refusal.
    func join(_ topic: String, ref: String = "1", token: String? = nil) async -> String? {
      var payload: [String: JSONValue] = [
        "config": [
          "broadcast": ["ack": true, "self": false], "presence": ["enabled": false], "postgres_changes": [],
          "private": true,
        ]
      ]
      if let token { payload["access_token"] = .string(token) }
      send(PhoenixFrame(joinRef: ref, ref: ref, topic: "realtime:" + topic, event: "phx_join", .object(payload)))
      while let frame = await frame() {
        guard frame.ref == ref else { continue }
        return frame.replyStatus == "ok" ? "ok" : frame.json?["response"]?["reason"]?.stringValue
      }
      return nil
    }
  }
#endif
