import HostKit
import PhoenixChannels

/// A sequence being carried out.
struct SequenceRun {
  private let sequence: MachineSequence
  var driver: MachineDriver
  /// Wanted topics with their subscribers, as a user would count them.
  private var wanted: [String: Int] = [:]
  private var isStarted = false

  init(_ sequence: MachineSequence) {
    self.sequence = sequence
    var policy = ConnectionPolicy()
    policy.usesCredentials = sequence.usesCredentials
    driver = MachineDriver(policy)
    if let seed = sequence.chance {
      let chance = Locked(SeededRandom(seed))
      driver.jitter = { chance.withLock { $0.unit() } }
    }
  }

  /// Carries out all steps, then heals and stops.
  mutating func failure() -> String? {
    for step in sequence.steps {
      apply(step)
      driver.forget()
      if let violation = driver.rules.violations.first { return violation }
    }
    return heal() ?? end()
  }

  /// Long, because the longest words are taken for secrets.
  static func token(_ number: Int) -> String { "token-\(number)-" + String(repeating: "x", count: 80) }

  mutating func apply(_ step: MachineStep) {
    switch step {
    case .start:
      isStarted = true
      driver.feed(.start)
    case .stop:
      isStarted = false
      driver.feed(.stop)
    case .subscribe(let topic):
      wanted[topic, default: 0] += 1
      driver.subscribe(topic)
    case .unsubscribe(let topic):
      if let count = wanted[topic] { wanted[topic] = count == 1 ? nil : count - 1 }
      driver.unsubscribe(topic)
    case .hint(let hint): driver.feed(.hint(hint))
    case .token(let number): driver.feed(.credentials(.token(Self.token(number))))
    case .emptyToken: driver.feed(.credentials(.token("")))
    case .withdrawn: driver.feed(.credentials(.withdrawn))
    case .unavailable: driver.feed(.credentials(.unavailable))
    case .ending: driver.feed(.credentials(.ending))
    case .opened: driver.feed(TransportEvent.opened)
    case .failed(let isConfiguration): driver.feed(TransportEvent.failed("gone", isConfiguration: isConfiguration))
    case .closed(let code): driver.feed(TransportEvent.closed(code: code, reason: ""))
    case .refused(let status, let retryAfter, let body):
      driver.feed(TransportEvent.refused(status: status, retryAfterSeconds: retryAfter, body: body))
    case .late(let late): apply(late)
    case .answer(let topic, let ref, let status, let reason): answer(topic, ref, status, reason)
    case .close(let topic, let ref): end(topic, ref, "phx_close")
    case .error(let topic, let ref): end(topic, ref, "phx_error")
    case .system(let topic, let ref, let status, let name, let message):
      driver.receive(
        "system", topic, joinRef: joinRef(topic, ref),
        ["status": .string(status), "extension": .string(name), "message": .string(message)])
    case .event(let name, let topic, let ref):
      driver.receive(name, topic, joinRef: joinRef(topic, ref), ["event": "changed", "payload": [:]])
    case .heartbeatAnswer(let ref): answerHeartbeat(ref)
    case .undecodable: driver.feed(TransportEvent.frame(.failure(.tooShort), receivedAt: 1))
    case .oversized: driver.feed(TransportEvent.tooLarge(bytes: 9_999_999))
    case .pong: driver.feed(TransportEvent.pong)
    case .advance(let seconds): driver.advance(seconds)
    case .sleep(let seconds): driver.sleep(seconds)
    case .nextTimer: driver.advanceToNextTimer()
    case .staleTimer(let index):
      let cancelled = driver.cancelled
      if !cancelled.isEmpty { driver.feed(.timer(cancelled[cancelled.count - 1 - index % cancelled.count])) }
    }
  }

  private mutating func apply(_ late: MachineStep.Late) {
    guard let id = driver.earlierTransport else { return }
    let event: TransportEvent
    switch late {
    case .opened: event = .opened
    case .closed: event = .closed(code: 1000, reason: "")
    case .failed: event = .failed("gone", isConfiguration: false)
    case .refused: event = .refused(status: 401, retryAfterSeconds: 60, body: nil)
    case .pong: event = .pong
    case .answer(let topic):
      let ref = driver.joinRef(topic)
      event = .frame(
        .success(
          PhoenixFrame(
            joinRef: ref, ref: ref, topic: "realtime:\(topic)", event: "phx_reply", ["status": "ok", "response": [:]])),
        receivedAt: 1)
    }
    driver.feed(.transport(id, event))
  }

  // MARK: Frames

  private func reference(_ topic: String, _ ref: MachineStep.Ref) -> String? {
    switch ref {
    case .current, .mixed: driver.joinRef(topic)
    case .previous: driver.earlierJoinRef(topic) ?? "0"
    case .leave: driver.leaveRef(topic)
    case .unknown: "999999"
    case .none: nil
    }
  }

  /// What the `join_ref` of a frame says, if the version has one.
  private func joinRef(_ topic: String, _ ref: MachineStep.Ref) -> String? {
    if sequence.isVersion1 { return nil }
    return reference(topic, ref == .mixed ? .previous : ref)
  }

  private mutating func answer(_ topic: String, _ ref: MachineStep.Ref, _ status: String, _ reason: String?) {
    let joinRef = ref == .leave ? self.joinRef(topic, .previous) : self.joinRef(topic, ref)
    let response: JSONValue = status == "ok" ? [:] : reason.map { ["reason": .string($0)] } ?? nil
    driver.receive(
      "phx_reply", topic, joinRef: joinRef, ref: reference(topic, ref),
      ["status": .string(status), "response": response])
  }

  private mutating func end(_ topic: String, _ ref: MachineStep.Ref, _ event: String) {
    driver.receive(event, topic, joinRef: joinRef(topic, ref), ref: reference(topic, ref))
  }

  private mutating func answerHeartbeat(_ ref: MachineStep.Ref) {
    let refs = driver.heartbeatRefs
    let reference: String?
    switch ref {
    case .current: reference = refs.last
    case .previous, .mixed, .leave: reference = refs.dropLast().last ?? "0"
    case .unknown: reference = "999999"
    case .none: reference = nil
    }
    driver.receive(
      PhoenixFrame(ref: reference, topic: "phoenix", event: "phx_reply", ["status": "ok", "response": [:]]))
  }

  // MARK: The end

  /// From now on everything works. Whatever happened, all wanted topics must come into service.
  private mutating func heal() -> String? {
    if !isStarted { apply(.start) }
    if wanted.isEmpty { apply(.subscribe("a")) }
    driver.feed(.hint(.pathSatisfied))
    for round in 0..<400 {
      driver.feed(TransportEvent.opened)
      // The session owner goes on producing tokens.
      if !driver.lastStatus.isReady, sequence.usesCredentials || driver.lastStatus.state == .awaitingCredentials {
        driver.feed(.credentials(.token(Self.token(1_000 + round))))
      }
      driver.acceptJoins()
      driver.answerHeartbeat()
      driver.forget()
      if let violation = driver.rules.violations.first { return violation }
      if driver.lastStatus.isReady { break }
      driver.advanceToNextTimer()
    }
    let status = driver.status
    guard status.isReady else { return "never ready again: \(status)" }
    let served = Set(status.topics.map(\.topic.name))
    if served != Set(wanted.keys) { return "serves \(served), wanted are \(wanted)" }
    for topic in status.topics where topic.subscribers != wanted[topic.topic.name] {
      return "\(topic.topic) has \(topic.subscribers) subscribers, not \(wanted[topic.topic.name] ?? 0)"
    }
    return nil
  }

  private mutating func end() -> String? {
    driver.feed(.stop)
    driver.advance(2)
    if driver.status.state != .stopped || !driver.timers.isEmpty { return "not stopped: \(driver.timers)" }
    driver.forget()
    driver.feed(TransportEvent.opened)
    driver.feed(TransportEvent.closed(code: 1000, reason: ""))
    driver.advance(3_600)
    if !driver.effects.isEmpty { return "after the stop: \(driver.effects)" }
    return driver.rules.violations.first
  }
}
