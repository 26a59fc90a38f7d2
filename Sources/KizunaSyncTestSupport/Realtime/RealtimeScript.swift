import HostKit
import PhoenixChannels
import SupabaseRealtime

/// What a scripted Realtime server expects and does, in order.
///
/// A step that expects something waits for the client; all others happen at once. Heartbeats are answered on the side
/// and never meet an expectation, unless the script asks for them.
public struct RealtimeScript: Sendable, ExpressibleByArrayLiteral {
  public enum Step: Sendable {
    /// The client must connect; it is let in.
    case accept
    /// The client must connect; the upgrade is answered with this.
    case refuse(status: Int, body: String? = nil, retryAfterSeconds: Int? = nil)
    /// The client must connect; the attempt fails.
    case fail(RealtimeTransportFailure)
    /// The client must connect; nothing ever happens, until the client gives up.
    case stall
    /// The next frame must look like this.
    case expect(ExpectedFrame)
    /// Answers the frame that was expected last.
    case reply(status: String = "ok", response: JSONValue = ["postgres_changes": []])
    /// Sends a frame.
    case send(PhoenixFrame)
    /// Sends anything, for what is no frame.
    case sendRaw(PhoenixMessage)
    /// A broadcast to a topic, named without prefix.
    case broadcast(topic: String, event: String = "changed", payload: JSONValue = [:])
    /// A message that the transport dropped for its size.
    case tooLarge(bytes: Int)
    /// Nothing for so many nanoseconds.
    case wait(UInt64)
    /// From now on heartbeats are not answered, or are again.
    case answerHeartbeats(Bool)
    /// The server closes the connection.
    case close(code: UInt16?, reason: String = "")
    /// The connection breaks.
    case cut
    /// The client must close the connection.
    case expectClose
  }

  public var steps: [Step]

  public init(_ steps: [Step]) {
    self.steps = steps
  }

  public init(arrayLiteral elements: Step...) {
    steps = elements
  }
}

/// A pattern for one frame from the client.
public struct ExpectedFrame: Sendable, Hashable, CustomStringConvertible {
  public var event: String
  /// As on the wire; nil matches any.
  public var topic: String?
  /// These members, at least, and with these values, at any depth; nil matches any payload.
  public var payload: JSONValue?

  public init(event: String, topic: String? = nil, payload: JSONValue? = nil) {
    self.event = event
    self.topic = topic
    self.payload = payload
  }

  /// Topics are named without prefix here.
  public static func join(_ topic: String, _ payload: JSONValue? = nil) -> ExpectedFrame {
    ExpectedFrame(event: PhoenixFrame.Name.join, topic: ChannelTopic.prefix + topic, payload: payload)
  }

  public static func leave(_ topic: String) -> ExpectedFrame {
    ExpectedFrame(event: PhoenixFrame.Name.leave, topic: ChannelTopic.prefix + topic)
  }

  public static func accessToken(_ topic: String, _ token: String) -> ExpectedFrame {
    ExpectedFrame(
      event: PhoenixFrame.Name.accessToken, topic: ChannelTopic.prefix + topic,
      payload: ["access_token": .string(token)])
  }

  public static let heartbeat = ExpectedFrame(event: PhoenixFrame.Name.heartbeat, topic: PhoenixFrame.Name.phoenix)

  public var description: String {
    "\(event) to \(topic ?? "any topic")" + (payload.map { " \($0)" } ?? "")
  }

  /// What does not fit, one line a difference; empty when the frame matches.
  func differences(from frame: PhoenixFrame) -> [String] {
    var lines: [String] = []
    if frame.event != event { lines.append("event: expected \(event), sent \(frame.event)") }
    if let topic, frame.topic != topic { lines.append("topic: expected \(topic), sent \(frame.topic)") }
    if let payload { Self.compare(payload, frame.json, at: "payload", &lines) }
    return lines
  }

  private static func compare(_ expected: JSONValue, _ sent: JSONValue?, at path: String, _ lines: inout [String]) {
    guard case .object(let members) = expected, case .object = sent else {
      if sent != expected { lines.append("\(path): expected \(expected), sent \(sent?.description ?? "nothing")") }
      return
    }
    for (name, value) in members.sorted(by: { $0.key < $1.key }) {
      compare(value, sent?[name], at: "\(path).\(name)", &lines)
    }
  }
}
