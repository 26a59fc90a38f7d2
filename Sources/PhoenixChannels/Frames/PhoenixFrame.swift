import HostKit

/// One message of the Phoenix channel protocol (Realtime wire contract §2).
public struct PhoenixFrame: Sendable, Hashable {
  /// The `ref` of the `phx_join` this message belongs to; nil for live broadcasts and under version 1.0.0.
  public var joinRef: String?
  /// Ties a reply to its request.
  public var ref: String?
  /// The name on the wire, prefix included, or `phoenix` for heartbeats.
  public var topic: String
  public var event: String
  public var payload: Payload
  /// The references came as numbers, and go as numbers: a server echoes the type it was sent. Set by the server's half.
  public var hasNumericReferences = false

  public enum Payload: Sendable, Hashable {
    case json(JSONValue)
    /// What follows the names in binary kinds 0 and 2.
    case bytes([UInt8])
    /// A binary reply (kind 1).
    case reply(status: String, bytes: [UInt8])
    /// A user broadcast in its binary form (kinds 3 and 4).
    case broadcast(UserBroadcast)
  }

  public init(joinRef: String? = nil, ref: String? = nil, topic: String, event: String, payload: Payload) {
    self.joinRef = joinRef
    self.ref = ref
    self.topic = topic
    self.event = event
    self.payload = payload
  }

  public init(joinRef: String? = nil, ref: String? = nil, topic: String, event: String, _ payload: JSONValue) {
    self.init(joinRef: joinRef, ref: ref, topic: topic, event: event, payload: .json(payload))
  }
}

extension PhoenixFrame {
  /// Names of events and topics that the protocol itself uses.
  public enum Name {
    public static let join = "phx_join"
    public static let leave = "phx_leave"
    public static let reply = "phx_reply"
    public static let close = "phx_close"
    public static let error = "phx_error"
    public static let heartbeat = "heartbeat"
    public static let accessToken = "access_token"
    public static let broadcast = "broadcast"
    public static let system = "system"
    public static let postgresChanges = "postgres_changes"
    /// The topic of heartbeats.
    public static let phoenix = "phoenix"
  }

  /// The payload as JSON: a broadcast in the form it has as text; nil for opaque bytes.
  public var json: JSONValue? {
    switch payload {
    case .json(let value): value
    case .broadcast(let broadcast): broadcast.json
    case .bytes, .reply: nil
    }
  }

  /// The broadcast this frame carries, whichever form it came in; nil when it is none.
  public var userBroadcast: UserBroadcast? {
    guard event == Name.broadcast else { return nil }
    switch payload {
    case .broadcast(let broadcast): return broadcast
    case .json(let value): return UserBroadcast(json: value)
    case .bytes, .reply: return nil
    }
  }

  /// `status` of a reply; nil when this is no reply.
  public var replyStatus: String? {
    guard event == Name.reply else { return nil }
    if case .reply(let status, _) = payload { return status }
    return json?["status"]?.stringValue
  }
}

/// A message that an application or a database function sent to a topic (Realtime wire contract §7).
public struct UserBroadcast: Sendable, Hashable {
  public enum Content: Sendable, Hashable {
    case json(JSONValue)
    case bytes([UInt8])
  }

  /// The application's name for it, for example `changed`.
  public var event: String
  /// `{"id": …}` of a message that came from the database; nil when there is none.
  public var meta: JSONValue?
  public var content: Content

  public init(event: String, meta: JSONValue? = nil, content: Content) {
    self.event = event
    self.meta = meta
    self.content = content
  }

  /// Reads the textual form, `{"type":"broadcast","event":…,"payload":…}`. Members the sender left out are missing here.
  init(json: JSONValue) {
    event = json["event"]?.stringValue ?? ""
    meta = json["meta"]
    content = .json(json["payload"] ?? .null)
  }

  /// The textual form; nil for opaque bytes.
  var json: JSONValue? {
    guard case .json(let payload) = content else { return nil }
    var members: [String: JSONValue] = ["type": "broadcast", "event": .string(event), "payload": payload]
    members["meta"] = meta
    return .object(members)
  }
}
