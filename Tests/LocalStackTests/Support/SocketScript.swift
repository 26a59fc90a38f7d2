import HostKit
import PhoenixChannels

@testable import LocalStack

/// A Realtime socket fed by hand on a clock of its own; frames are written as the JSON they are on the wire.
struct SocketScript {
  var socket: RealtimeSocket
  var now: UInt64 = 0
  let serverSerializer: PhoenixSerializer
  /// The calendar when `now` is 0.
  static let wallStart: Int64 = 1_900_000_000_000

  init(
    _ version: PhoenixVersion = .v2, connectRole: String = "anon", connectExp: Int = 2_000_000_000,
    policy: RealtimePolicy = .signedIn(), change: (inout RealtimeSettings) -> Void = { _ in }
  ) {
    var rules = RealtimeSocket.Rules(verifier: PlainVerifier())
    rules.policy = policy
    change(&rules.settings)
    let text = PlainVerifier.token(role: connectRole, exp: connectExp)
    let token = AcceptedToken(
      text: text, claims: ["role": .string(connectRole)], expiresAt: Double(connectExp))
    serverSerializer = PhoenixSerializer(version, side: .server)
    socket = RealtimeSocket(
      version: version, token: token, rules: rules,
      at: RealtimeSocket.Instant(now: 0, wallMilliseconds: Self.wallStart))
  }

  var instant: RealtimeSocket.Instant {
    RealtimeSocket.Instant(now: now, wallMilliseconds: Self.wallStart + Int64(now / 1_000_000))
  }

  mutating func send(_ text: String) -> [String] {
    socket.bytesArrived(at: instant)
    return describe(socket.receive(.message(.text(text)), at: instant))
  }

  mutating func receive(_ input: RealtimeSocket.Input) -> [String] {
    describe(socket.receive(input, at: instant))
  }

  /// Answers the question that was asked.
  mutating func decide(
    _ decision: RealtimeDecision, _ access: RealtimeQuestion.Access, _ topic: String, claims: JSONValue
  ) -> [String] {
    describe(
      socket.decided(RealtimeQuestion(access, topic: topic, claims: claims), decision, at: instant))
  }

  /// Lets time pass, stopping at every deadline on the way.
  mutating func wait(_ nanoseconds: UInt64) -> [String] {
    let end = now + nanoseconds
    var lines: [String] = []
    while let deadline = socket.nextDeadline, deadline <= end {
      now = max(now, deadline)
      lines += describe(socket.advance(to: instant))
    }
    now = end
    return lines
  }

  /// One line an effect; frames as the client sees them.
  func describe(_ effects: [RealtimeSocket.Effect]) -> [String] {
    effects.map { effect in
      switch effect {
      case .send(let frame):
        switch try? serverSerializer.encode(frame) {
        case .text(let text): text
        case .binary(let bytes): "binary \(bytes.count): \(String(decoding: bytes.dropFirst(5), as: UTF8.self))"
        case nil: "not encodable"
        }
      case .pong(let payload): "pong \(payload)"
      case .answerClose(let code, _): "answer close \(code.map(String.init) ?? "-")"
      case .close(let code): "close \(code)"
      case .kill: "kill"
      case .entered(let room): "enter \(room.isPrivate ? "private" : "public") \(room.topic)"
      case .left(let room): "leave \(room.isPrivate ? "private" : "public") \(room.topic)"
      case .publish(let broadcast, let alsoToSender):
        "publish \(broadcast.room.topic)\(alsoToSender ? " also to sender" : "")"
      case .ask(let question):
        "ask \(question.access) \(question.topic) \(question.claims["role"]?.stringValue ?? "-")"
      }
    }
  }
}

/// Frames that clients send.
enum Frames {
  static func join(
    _ topic: String, ref: String = "1", isPrivate: Bool = true, token: String? = PlainVerifier.token(),
    broadcast: JSONValue = ["ack": false, "self": false]
  ) -> String {
    var payload: [String: JSONValue] = [
      "config": [
        "broadcast": broadcast, "presence": ["enabled": false], "postgres_changes": [], "private": .bool(isPrivate),
      ]
    ]
    if let token { payload["access_token"] = .string(token) }
    return JSONWriter.text([.string(ref), .string(ref), .string(topic), "phx_join", .object(payload)])
  }

  static let joined = #"{"response":{"postgres_changes":[]},"status":"ok"}"#

  static func ok(_ topic: String, ref: String = "1", joinRef: String? = nil) -> String {
    #"["\#(joinRef ?? ref)","\#(ref)","\#(topic)","phx_reply",\#(joined)]"#
  }

  static func refused(_ topic: String, ref: String = "1", _ reason: String) -> String {
    #"["\#(ref)","\#(ref)","\#(topic)","phx_reply",{"response":{"reason":"\#(reason)"},"status":"error"}]"#
  }
}
