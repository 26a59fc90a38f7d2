import HostKit
import PhoenixChannels

/// Runs a machine by hand: keeps its timers, plays the peer, and remembers what it did. Checks the machine's rules
/// after each event, so that every test is also a test of them.
struct MachineDriver {
  private(set) var machine: ConnectionMachine
  private(set) var now: UInt64 = .seconds(1_000)
  /// Chance, as fixed numbers in turn.
  var jitter: () -> Double = { 1 }
  private(set) var timers: [(token: TimerToken, at: UInt64)] = []
  private(set) var effects: [ConnectionEffect] = []
  /// The transport that was opened last.
  private(set) var transport: TransportID?
  /// The one before.
  private(set) var earlierTransport: TransportID?
  /// After the newest event.
  private(set) var lastStatus: ConnectionStatus
  var rules = MachineRules()
  /// Tokens of timers that were cancelled, newest last.
  private(set) var cancelled: [TimerToken] = []
  /// References of the newest two joins of each topic, the newest leave, and the newest two heartbeats.
  private var joinRefs: [String: [String]] = [:]
  private var leaveRefs: [String: String] = [:]
  private(set) var heartbeatRefs: [String] = []
  /// Keeps the events for `trace`.
  var isTracing = false
  private var log: [(at: UInt64, event: ConnectionEvent, effects: [ConnectionEffect])] = []

  init(_ policy: ConnectionPolicy = ConnectionPolicy()) {
    machine = ConnectionMachine(policy)
    lastStatus = machine.status
    rules = MachineRules(policy)
  }

  /// Without credentials, one topic, connected.
  static func open(
    topics: [String] = ["a"], credentials: String? = nil, _ change: (inout ConnectionPolicy) -> Void = { _ in }
  ) -> MachineDriver {
    var policy = ConnectionPolicy()
    policy.usesCredentials = credentials != nil
    change(&policy)
    var driver = MachineDriver(policy)
    for topic in topics { driver.subscribe(topic) }
    driver.feed(.start)
    if let credentials { driver.feed(.credentials(.token(credentials))) }
    driver.feed(.opened)
    return driver
  }

  /// Connected, and every topic joined.
  static func joined(
    topics: [String] = ["a"], credentials: String? = nil, _ change: (inout ConnectionPolicy) -> Void = { _ in }
  ) -> MachineDriver {
    var driver = open(topics: topics, credentials: credentials, change)
    driver.acceptJoins()
    return driver
  }

  // MARK: Feeding

  @discardableResult
  mutating func feed(_ event: ConnectionEvent) -> [ConnectionEffect] {
    let new = machine.handle(event, now: now, jitter: jitter)
    for effect in new {
      switch effect {
      case .schedule(let token, let at): timers.append((token, at))
      case .cancel(let token):
        timers.removeAll { $0.token == token }
        cancelled.append(token)
        if cancelled.count > 64 { cancelled.removeFirst() }
      case .connect(let id): (earlierTransport, transport) = (transport, id)
      case .send(_, let frame): remember(frame)
      default: break
      }
    }
    effects += new
    if isTracing { log.append((now, event, new)) }
    let status = machine.status
    rules.check(event, new, lastStatus, status, timers: timers, now: now)
    lastStatus = status
    return new
  }

  private mutating func remember(_ frame: PhoenixFrame) {
    guard let ref = frame.ref else { return }
    switch frame.event {
    case "phx_join": joinRefs[frame.topic] = (joinRefs[frame.topic] ?? []).suffix(1) + [ref]
    case "phx_leave": leaveRefs[frame.topic] = ref
    case "heartbeat": heartbeatRefs = heartbeatRefs.suffix(1) + [ref]
    default: break
    }
  }

  /// An event of the newest transport.
  @discardableResult
  mutating func feed(_ event: TransportEvent) -> [ConnectionEffect] {
    guard let transport else { return [] }
    return feed(.transport(transport, event))
  }

  mutating func subscribe(_ topic: String) { feed(.subscribe(Self.topic(topic))) }
  mutating func unsubscribe(_ topic: String) { feed(.unsubscribe([Self.topic(topic)])) }

  /// Names in tests are short enough.
  static func topic(_ name: String) -> ChannelTopic { try! ChannelTopic(name) }

  /// Lets time pass; each timer fires at its own time.
  mutating func advance(_ seconds: Double) {
    let end = now + .seconds(seconds)
    while let index = timers.indices.filter({ timers[$0].at <= end }).min(by: { timers[$0].at < timers[$1].at }) {
      let timer = timers.remove(at: index)
      now = max(now, timer.at)
      feed(.timer(timer.token))
    }
    now = end
  }

  /// Lets time pass until the earliest timer fires; does nothing when none is armed.
  mutating func advanceToNextTimer() {
    guard let next = timers.map(\.at).min() else { return }
    advance((max(next, now) - now).inSeconds)
  }

  /// Lets time pass without any timer firing, as when the process sleeps.
  mutating func sleep(_ seconds: Double) { now += .seconds(seconds) }

  // MARK: The peer

  @discardableResult
  mutating func receive(_ frame: PhoenixFrame) -> [ConnectionEffect] {
    feed(.frame(.success(frame), receivedAt: 1))
  }

  mutating func receive(
    _ event: String, _ topic: String, joinRef: String? = nil, ref: String? = nil, _ payload: JSONValue = [:]
  ) {
    receive(PhoenixFrame(joinRef: joinRef, ref: ref, topic: "realtime:\(topic)", event: event, payload))
  }

  mutating func reply(
    _ topic: String, ref: String, _ status: String = "ok", _ response: JSONValue = ["postgres_changes": []]
  ) {
    receive("phx_reply", topic, joinRef: ref, ref: ref, ["status": .string(status), "response": response])
  }

  mutating func refuse(_ topic: String, _ reason: String) {
    guard let ref = joinRef(topic) else { return }
    reply(topic, ref: ref, "error", ["reason": .string(reason)])
  }

  mutating func accept(_ topic: String) {
    guard let ref = joinRef(topic) else { return }
    reply(topic, ref: ref)
  }

  /// Accepts joins until none is out.
  mutating func acceptJoins() {
    while let topic = lastStatus.topics.first(where: { $0.state == .joining }) { accept(topic.topic.name) }
  }

  mutating func answerHeartbeat() {
    guard let ref = heartbeatRefs.last else { return }
    receive(PhoenixFrame(ref: ref, topic: "phoenix", event: "phx_reply", ["status": "ok", "response": [:]]))
  }

  mutating func broadcast(_ topic: String, _ event: String = "changed") {
    receive("broadcast", topic, ["type": "broadcast", "event": .string(event), "payload": [:]])
  }

  /// Lets time pass as with a server that answers heartbeats.
  mutating func advanceAnswering(_ seconds: Double) {
    let end = now + .seconds(seconds)
    while now < end {
      advance(min(1, (end - now).inSeconds))
      if effects.contains(where: { $0.isHeartbeat }) { answerHeartbeat() }
    }
  }

  // MARK: What it did

  var status: ConnectionStatus { machine.status }

  func state(_ topic: String) -> ConnectionStatus.TopicState? {
    status.topics.first { $0.topic.name == topic }?.state
  }

  var frames: [PhoenixFrame] {
    effects.compactMap { if case .send(_, let frame) = $0 { frame } else { nil } }
  }

  func sent(_ event: String, _ topic: String? = nil) -> [PhoenixFrame] {
    frames.filter { $0.event == event && (topic == nil || $0.topic == "realtime:\(topic!)") }
  }

  func joins(_ topic: String? = nil) -> [PhoenixFrame] { sent("phx_join", topic) }

  /// Reference of the newest join of a topic.
  func joinRef(_ topic: String) -> String? { joinRefs["realtime:\(topic)"]?.last }
  /// Reference of the join before.
  func earlierJoinRef(_ topic: String) -> String? { joinRefs["realtime:\(topic)"]?.dropLast().last }
  func leaveRef(_ topic: String) -> String? { leaveRefs["realtime:\(topic)"] }

  var connects: Int { effects.count { if case .connect = $0 { true } else { false } } }
  var closes: Int { effects.count { if case .close = $0 { true } else { false } } }
  var rings: [ConnectionRing] { effects.compactMap { if case .ring(let ring) = $0 { ring } else { nil } } }
  var notes: [ConnectionNote] { effects.compactMap { if case .note(let note) = $0 { note } else { nil } } }
  var asks: [Bool] { effects.compactMap { if case .requestCredentials(let fresh) = $0 { fresh } else { nil } } }
  var isStopped: Bool { effects.contains(.stopped) }

  /// Seconds from now until the reconnect that is armed; nil when none is.
  var reconnectIn: Double? { timers.first { $0.token.kind == .reconnect }.map { ($0.at - now).inSeconds } }

  mutating func forget() { effects = [] }

  /// The last events and effects, for a failing sequence.
  func trace(_ count: Int = 60) -> String {
    log.suffix(count).map { entry in
      let effects = entry.effects.map { "\n    " + "\($0)".replacing("PhoenixChannels.", with: "").prefix(160) }
      return "\(entry.at.inSeconds) \(entry.event.summary)" + effects.joined()
    }.joined(separator: "\n")
  }
}

extension ConnectionEffect {
  fileprivate var isHeartbeat: Bool {
    if case .send(_, let frame) = self { frame.event == "heartbeat" } else { false }
  }
}
