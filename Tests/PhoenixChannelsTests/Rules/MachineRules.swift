import HostKit
import PhoenixChannels

/// The rules of `ConnectionMachine`, checked from outside after each event. It keeps its own account of what happened,
/// from events and effects; of the machine it sees the status alone.
struct MachineRules {
  let policy: ConnectionPolicy
  /// What was violated, in words.
  private(set) var violations: [String] = []

  // The account before the event.
  var transport: TransportID?
  var isOpen = false
  var isClosing = false
  var isStopped = true
  var stopIsComplete = true
  /// Topics of the joins that are unanswered on this transport, by reference.
  var outstanding: [String: String] = [:]
  /// Reference of the newest join of each topic on this transport.
  var newestJoins: [String: String] = [:]
  /// Joins that were accepted and have not ended since, by topic: what a topic is joined by. Without a cause none ends.
  var standing: [String: String] = [:]
  /// Numbers of the tokens that the joins on this transport carried, by reference.
  var joinTokens: [String: Int] = [:]
  /// Joins that were given up: until then the server may be busy with them.
  var busyUntil: UInt64 = 0
  /// Topics whose join was accepted and which await their ring, with the time.
  var unrung: [String: UInt64] = [:]
  /// References of the heartbeats that are unanswered on this transport.
  var heartbeats: [String] = []
  var attempts: [UInt64] = []
  /// Every topic is joined or denied since then.
  var settledSince: UInt64?
  /// The server asked not to come back before.
  var notBefore: UInt64 = 0
  var token: String?
  /// How often the token has changed.
  var tokenNumber = 0
  var isWithdrawn = false
  /// All tokens so far, newest last.
  var tokens: [String] = []
  /// The newest token was refused, and nothing has been heard of a better one.
  var isRefused = false
  /// Fresh credentials were asked for since a token proved good, by a channel that stood with it for a while.
  var freshAsks = 0
  /// Since when each joined topic has stood with the newest token it was given.
  var goodSince: [String: UInt64] = [:]
  /// Timers that were cancelled before this event.
  private var stale: Set<TimerToken> = []
  private var usedRefs: Set<String> = []
  private var newestEvent: (event: ConnectionEvent, now: UInt64)?

  init(_ policy: ConnectionPolicy = ConnectionPolicy()) { self.policy = policy }

  /// What happened at one event.
  struct Step {
    let event: ConnectionEvent
    let effects: [ConnectionEffect]
    let before: ConnectionStatus
    let after: ConnectionStatus
    let timers: [(token: TimerToken, at: UInt64)]
    let now: UInt64

    func deadline(_ kind: TimerToken.Kind) -> UInt64? { timers.first { $0.token.kind == kind }?.at }
  }

  mutating func check(
    _ event: ConnectionEvent, _ effects: [ConnectionEffect], _ before: ConnectionStatus, _ after: ConnectionStatus,
    timers: [(token: TimerToken, at: UInt64)], now: UInt64
  ) {
    let step = Step(event: event, effects: effects, before: before, after: after, timers: timers, now: now)
    newestEvent = (event, now)
    checkStale(step)
    checkFrames(step)
    checkHints(step)
    if !isRefused, goodSince.values.contains(where: { now >= $0 + policy.reconnect.stabilityWindow }) { freshAsks = 0 }
    observe(step)
    for effect in effects {
      observe(effect, step)
      if case .cancel(let token) = effect { stale.insert(token) }
    }
    observeGood(step)
    checkTransport(step)
    checkTopics(step)
    checkDelays(step)
    checkLiveness(step)
    checkCredentials(step)
    checkRings(step)
    checkStop(step)
    checkSecrets(step)
  }

  mutating func violate(_ text: String) {
    let context = newestEvent.map { ", at \($0.now.inSeconds) s after \($0.event.summary)" } ?? ""
    violations.append(text + context)
  }

  /// Nothing but the deadline of a heartbeat answer may have moved.
  func isQuiet(_ step: Step) -> Bool {
    var before = step.before
    before.counters = step.after.counters
    before.lastRoundTrip = step.after.lastRoundTrip
    guard before == step.after else { return false }
    return step.effects.allSatisfy { effect in
      switch effect {
      case .schedule(let token, _), .cancel(let token): token.kind == .answer
      default: false
      }
    }
  }

  private mutating func checkStale(_ step: Step) {
    if case .timer(let token) = step.event, stale.contains(token), !step.effects.isEmpty || step.before != step.after {
      violate("a stale timer changed something")
    }
  }

  // MARK: The account

  private mutating func observe(_ step: Step) {
    switch step.event {
    case .start:
      if isStopped {
        isRefused = false
        isWithdrawn = false
        freshAsks = 0
      }
      isStopped = false
      stopIsComplete = false
    case .stop:
      isStopped = true
      unrung = [:]
    case .transport(let id, let event) where id == transport: observe(event, step)
    case .credentials(.token(let token)):
      isWithdrawn = token.isEmpty
      if token == self.token { break }
      self.token = token.isEmpty ? nil : token
      tokenNumber += 1
      isRefused = false
      tokens.append(token)
    case .credentials(.withdrawn):
      isWithdrawn = true
      token = nil
      tokenNumber += 1
    case .credentials(.unavailable): if freshAsks > 0 { freshAsks -= 1 }
    case .hint(.manual):
      if step.before.state == .awaitingCredentials {
        isRefused = false
        freshAsks = 0
      }
    default: break
    }
  }

  private mutating func observeGood(_ step: Step) {
    let joined = step.after.topics.filter { $0.state == .joined }.map(\.topic.wireName)
    goodSince = goodSince.filter { joined.contains($0.key) }
    for topic in joined where goodSince[topic] == nil { goodSince[topic] = step.now }
    for case .send(_, let frame) in step.effects where frame.event == "access_token" {
      goodSince[frame.topic] = step.now
    }
  }

  private mutating func observe(_ event: TransportEvent, _ step: Step) {
    switch event {
    case .opened: if !isClosing { isOpen = true }
    case .refused(let status, let retryAfter, _):
      if let retryAfter, retryAfter > 0, !isClosing {
        let asked = min(UInt64.seconds(Double(min(retryAfter, 1_000_000))), policy.reconnect.maximumRetryAfter)
        notBefore = step.now + asked
      }
      if status == 401, !isClosing, policy.usesCredentials, step.after.lastFailure?.failureClass == .auth {
        isRefused = true
      }
      ended()
    case .failed, .closed: ended()
    case .frame(.success(let frame), _): if isOpen, !isClosing { observe(frame, step) }
    case .frame, .tooLarge, .pong: break
    }
  }

  private mutating func observe(_ frame: PhoenixFrame, _ step: Step) {
    if frame.topic == PhoenixFrame.Name.phoenix {
      // An answer to an older one does not count.
      if let ref = frame.ref, ref == heartbeats.last { heartbeats = [] }
      return
    }
    if frame.event == "phx_close" || frame.event == "phx_error" {
      // Who names no join means one that was accepted.
      let joinRef = frame.joinRef ?? frame.ref ?? standing[frame.topic]
      if let joinRef, outstanding[joinRef] == frame.topic { outstanding[joinRef] = nil }
      if standing[frame.topic] == joinRef { standing[frame.topic] = nil }
    }
    guard frame.event == "phx_reply", let ref = frame.ref, let topic = outstanding[ref], topic == frame.topic,
      frame.joinRef == nil || frame.joinRef == ref
    else { return }
    outstanding[ref] = nil
    if frame.replyStatus == "ok" {
      unrung[topic] = step.now
      standing[topic] = ref
    } else if policy.usesCredentials, joinTokens[ref] == tokenNumber,
      step.after.topics.first(where: { $0.topic.wireName == topic })?.lastFailure?.failureClass == .auth
    {
      isRefused = true
    }
  }

  private mutating func ended() {
    transport = nil
    isOpen = false
    isClosing = false
    leaveTransport()
  }

  private mutating func leaveTransport() {
    outstanding = [:]
    newestJoins = [:]
    standing = [:]
    joinTokens = [:]
    heartbeats = []
    busyUntil = 0
  }

  private mutating func observe(_ effect: ConnectionEffect, _ step: Step) {
    switch effect {
    case .connect(let id):
      if transport != nil { violate("two transports") }
      if isStopped { violate("connects after the stop") }
      transport = id
      attempts.removeAll { $0 + policy.reconnect.budgetWindow <= step.now }
      attempts.append(step.now)
    case .close(let id, _, _):
      if id != transport { violate("closes a transport that is gone") }
      if isClosing { violate("closes twice") }
      isClosing = true
      leaveTransport()
    case .abandon(let id):
      if id != transport || !isClosing { violate("abandons what is not closing") }
      ended()
    case .send(let id, let frame): observe(frame, id, step)
    case .ring(let ring): observe(ring)
    case .stopped:
      if transport != nil { violate("stopped with a transport") }
      // A start may have come while the old transport was closing.
      stopIsComplete = step.after.state == .stopped
    case .requestCredentials(let refresh): if refresh { freshAsks += 1 }
    case .schedule(_, let at): if at < step.now { violate("a timer in the past") }
    case .note(.left(let topic)): unrung[topic.wireName] = nil
    case .cancel, .note: break
    }
  }

  private mutating func observe(_ frame: PhoenixFrame, _ id: TransportID, _ step: Step) {
    if id != transport || !isOpen || isClosing { violate("sends \(frame.event) on a transport that is not open") }
    if let ref = frame.ref, !usedRefs.insert(ref).inserted { violate("uses reference \(ref) twice") }
    guard let ref = frame.ref else { return violate("sends \(frame.event) without a reference") }
    switch frame.event {
    case "phx_join":
      if outstanding.values.contains(frame.topic) { violate("two joins of \(frame.topic)") }
      if standing[frame.topic] != nil { violate("joins \(frame.topic) again, which is joined") }
      if frame.joinRef != ref { violate("a join whose references differ") }
      outstanding[ref] = frame.topic
      newestJoins[frame.topic] = ref
      joinTokens[ref] = tokenNumber
    case "phx_leave":
      if let joinRef = frame.joinRef, outstanding.removeValue(forKey: joinRef) != nil {
        busyUntil = max(busyUntil, step.now + policy.join.deadline)
      }
      if standing[frame.topic] == frame.joinRef { standing[frame.topic] = nil }
      if frame.joinRef != newestJoins[frame.topic] { violate("leaves another join than the newest") }
    case "heartbeat": heartbeats.append(ref)
    default: break
    }
    checkTokens(frame)
  }
}

extension ConnectionEvent {
  /// Short, for messages.
  var summary: String {
    switch self {
    case .start: "start"
    case .stop: "stop"
    case .subscribe(let topic): "subscribe \(topic)"
    case .unsubscribe(let topic): "unsubscribe \(topic)"
    case .credentials: "credentials"
    case .hint(let hint): "hint \(hint)"
    case .transport(let id, let event): "\(id) \("\(event)".prefix(160))"
    case .timer(let token): "timer \(token.kind)"
    }
  }
}
