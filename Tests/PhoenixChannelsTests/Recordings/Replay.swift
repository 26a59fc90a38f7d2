import HostKit
import PhoenixChannels

/// One socket of a recording, played through a machine.
struct Replay {
  private(set) var driver: MachineDriver
  /// Topics when either side began to close.
  private(set) var topicsAtTheEnd: [ConnectionStatus.Topic] = []
  /// Recorded joins and heartbeats that the machine had no reason to send.
  private(set) var unsent: [String] = []
  private let recording: Recording
  private let connection: String
  private let serializer: PhoenixSerializer
  private let clientSerializer: PhoenixSerializer
  /// Recorded references and the machine's own for the same frames.
  private var refs: [String: String] = [:]
  /// Recorded reference of the newest join of each topic.
  private var recordedJoins: [String: String] = [:]
  /// The beginning of a message that came in pieces.
  private var fragment = ""
  private var sawEnd = false

  static func run(_ recording: Recording, connection: String = "A") -> Replay {
    var replay = Replay(recording, connection)
    for line in recording.lines where line.connection == connection { replay.play(line) }
    if !replay.sawEnd { replay.end() }
    return replay
  }

  private init(_ recording: Recording, _ connection: String) {
    self.recording = recording
    self.connection = connection
    let version = recording.version(of: connection)
    serializer = PhoenixSerializer(version)
    clientSerializer = PhoenixSerializer(version, side: .server)
    // Recorded clients send heartbeats as they like.
    var policy = ConnectionPolicy()
    policy.heartbeat.probeSpacing = 0
    driver = MachineDriver(policy)
  }

  func atTheEnd(_ topic: String) -> ConnectionStatus.TopicState? {
    topicsAtTheEnd.first { $0.topic.name == topic }?.state
  }

  // MARK: Lines

  private mutating func play(_ line: Recording.Line) {
    switch (line.direction, line.json["kind"]?.stringValue, line.json["opcode"]?.stringValue) {
    case ("client->server", "http-upgrade", _), ("client->server", "http", _): begin()
    case ("server->client", "http-response", _): answer(line)
    case ("client->server", _, "close"): end()
    case ("server->client", _, "close"):
      let code = line.json["close_code"]?.intValue.flatMap { UInt16(exactly: $0) }
      lost(code: code, reason: line.json["close_reason"]?.stringValue ?? "")
    case ("event", _, _):
      if line.json["event"]?.stringValue == "tcp-eof" { lost(code: nil, reason: "") }
    case ("client->server", _, "continuation"):
      if let frame = try? clientSerializer.decode(.text(fragment + (line.json["text"]?.stringValue ?? ""))) {
        fromClient(frame)
      }
    default:
      guard let message = line.message, !sawEnd else { return }
      if line.isFromServer { fromServer(message) } else { fromClient(message) }
    }
  }

  private mutating func begin() {
    guard driver.status.state == .stopped else { return }
    // A topic of its own opens the connection; it is dropped as soon as the recording joins one.
    driver.subscribe("placeholder")
    driver.feed(.start)
  }

  private mutating func answer(_ line: Recording.Line) {
    let status = line.json["status"]?.intValue ?? 0
    if status == 101 {
      driver.feed(.opened)
    } else {
      driver.feed(.credentials(.token("{{jwt:user}}")))
      driver.feed(.refused(status: status, retryAfterSeconds: nil, body: line.json["body"]?.stringValue))
    }
  }

  private mutating func lost(code: UInt16?, reason: String) {
    guard !sawEnd else { return }
    end()
    driver.feed(.closed(code: code, reason: reason))
  }

  private mutating func end() {
    guard !sawEnd else { return }
    sawEnd = true
    topicsAtTheEnd = driver.status.topics
  }

  // MARK: The client

  private mutating func fromClient(_ message: PhoenixMessage) {
    guard let frame = try? clientSerializer.decode(message) else {
      if case .text(let text) = message { fragment = text }
      return
    }
    fromClient(frame)
  }

  private mutating func fromClient(_ frame: PhoenixFrame) {
    let name = Self.name(frame.topic)
    switch frame.event {
    case "phx_join": join(frame, name)
    case "phx_leave":
      // The machine never leaves another join than the newest.
      guard driver.state(name) != nil, frame.joinRef == nil || frame.joinRef == recordedJoins[name] else { return }
      driver.unsubscribe(name)
      if let ref = frame.ref { refs[ref] = driver.leaveRef(name) }
    case "access_token":
      guard driver.state(name) != nil, let token = frame.json?["access_token"]?.stringValue, !token.hasPrefix("sb_")
      else { return }
      driver.feed(.credentials(.token(token)))
    case "heartbeat":
      guard let ref = frame.ref else { return }
      let before = driver.sent("heartbeat").count
      driver.feed(.hint(.manual))
      if driver.sent("heartbeat").count == before { unsent.append("heartbeat \(ref)") }
      refs[ref] = driver.sent("heartbeat").last?.ref
    default: break
    }
  }

  private mutating func join(_ frame: PhoenixFrame, _ name: String) {
    let before = driver.joins(name).count
    // The machine joins a topic once; who wants a second join has to leave the first.
    if driver.state(name) == .joined { driver.unsubscribe(name) }
    if driver.state(name) == nil { driver.subscribe(name) }
    driver.unsubscribe("placeholder")
    let token = frame.json?["access_token"]?.stringValue ?? "{{jwt:anon}}"
    driver.feed(.credentials(.token(token)))
    // A topic that was closed comes back after its delay.
    if driver.joins(name).count == before, driver.state(name) != .joining { driver.advance(31) }
    if driver.joins(name).isEmpty { unsent.append("join \(name)") }
    guard let ref = frame.ref else { return }
    recordedJoins[name] = ref
    refs[ref] = driver.joinRef(name)
  }

  /// Names that cannot be wanted get one that can.
  private static func name(_ topic: String) -> String {
    guard topic.hasPrefix(ChannelTopic.prefix) else { return topic }
    let name = String(topic.dropFirst(ChannelTopic.prefix.count))
    return name.isEmpty ? unnamed : name
  }

  static let unnamed = "unnamed"

  // MARK: The server

  private mutating func fromServer(_ message: PhoenixMessage) {
    let result = Result { () throws(PhoenixDecodingError) in try serializer.decode(message) }
    guard case .success(var frame) = result else {
      driver.feed(.frame(result, receivedAt: 1))
      return
    }
    frame.joinRef = frame.joinRef.map { refs[$0] ?? "unknown \($0)" }
    frame.ref = frame.ref.map { refs[$0] ?? "unknown \($0)" }
    if frame.topic != PhoenixFrame.Name.phoenix { frame.topic = ChannelTopic.prefix + Self.name(frame.topic) }
    driver.receive(frame)
  }
}
