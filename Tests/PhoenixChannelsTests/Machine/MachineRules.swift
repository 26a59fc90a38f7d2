import HostKit
import PhoenixChannels

/// The rules of `ConnectionMachine`, checked from outside after each event: only effects and the status are looked at.
struct MachineRules {
  var policy = ConnectionPolicy()
  /// What was violated, in words.
  private(set) var violations: [String] = []

  private var transport: TransportID?
  private var isOpen = false
  private var isClosing = false
  private var stopped = true
  private var stopIsComplete = true
  /// Joins unanswered on the current transport.
  private var outstanding: [String: String] = [:]
  /// Topics whose join was accepted and which await their ring, with the time.
  private var unrung: [String: UInt64] = [:]
  private var attempts: [UInt64] = []
  private var token: String?
  /// Timers that were cancelled before this event.
  private var stale: Set<TimerToken> = []
  private var context = ""
  private var usedRefs: Set<String> = []

  mutating func check(
    _ event: ConnectionEvent, _ effects: [ConnectionEffect], _ before: ConnectionStatus, _ after: ConnectionStatus,
    timers: [(token: TimerToken, at: UInt64)], now: UInt64
  ) {
    context = "at \(now.inSeconds) s after \(event.summary)"
    observe(event, now: now)
    for effect in effects {
      observe(effect, after, now: now)
      if case .cancel(let token) = effect { stale.insert(token) }
    }

    // 1
    let kinds = timers.map(\.token.kind)
    if Set(kinds).count != kinds.count { violate("two timers of one kind") }
    if transport != nil, !isClosing, kinds.contains(.reconnect) { violate("a reconnect is armed beside a transport") }
    // 5
    if case .backingOff(let until) = after.state, !isClosing, until > now, !kinds.contains(.reconnect) {
      violate("waits without a timer")
    }
    if case .suspended = after.state, !kinds.contains(.reconnect), !isClosing { violate("suspended without a timer") }
    // Something must lead on from every state in which topics are wanted.
    if after.state == .connecting, !kinds.contains(.handshake) { violate("connects without a deadline") }
    if after.state == .open, !kinds.contains(.heartbeat) { violate("open without a heartbeat") }
    if isClosing, !kinds.contains(.close) { violate("closes without a deadline") }
    if after.state == .disconnected, !after.topics.isEmpty { violate("disconnected although topics are wanted") }
    for topic in after.topics {
      switch topic.state {
      case .joining where !kinds.contains(.join(topic.topic)): violate("joins \(topic.topic) without a deadline")
      case .backingOff where !kinds.contains(.rejoin(topic.topic)): violate("\(topic.topic) backs off without a timer")
      case .denied where after.state != .stopped && !kinds.contains(.rejoin(topic.topic)):
        violate("\(topic.topic) is denied for ever")
      case .joining where after.state != .open, .joined where after.state != .open:
        violate("\(topic.topic) is \(topic.state) without a connection")
      default: break
      }
    }
    if after.isReady
      != (after.state == .open && !after.topics.isEmpty && after.topics.allSatisfy { $0.state == .joined })
    {
      violate("ready is not what the topics say")
    }
    for case .join(let topic) in kinds where after.topics.first(where: { $0.topic == topic })?.state != .joining {
      violate("a join deadline for \(topic), which is not joining")
    }
    for case .rejoin(let topic) in kinds {
      switch after.topics.first(where: { $0.topic == topic })?.state {
      case .backingOff, .denied: break
      case let state: violate("a rejoin of \(topic), which is \(String(describing: state))")
      }
    }
    if case .timer(let token) = event, stale.contains(token), !effects.isEmpty || before != after {
      violate("a stale timer changed something")
    }
    // 7
    // After a sleep the timer may be due and not have fired yet.
    let ringIsDue = timers.contains { $0.token.kind == .ring && $0.at <= now }
    for (topic, since) in unrung where now > since + policy.join.ringDelay && !ringIsDue && !stopped {
      violate("\(topic) was joined and not rung")
    }
    // 8
    if stopIsComplete, !timers.isEmpty { violate("timers after the stop: \(kinds)") }
  }

  private mutating func observe(_ event: ConnectionEvent, now: UInt64) {
    switch event {
    case .start:
      stopped = false
      stopIsComplete = false
    case .stop:
      stopped = true
      unrung = [:]
    case .transport(let id, let event) where id == transport:
      switch event {
      case .opened: if !isClosing { isOpen = true }
      case .refused, .failed, .closed: ended()
      case .frame(.success(let frame), _):
        guard isOpen, !isClosing else { return }
        if frame.event == "phx_close" || frame.event == "phx_error", let joinRef = frame.joinRef ?? frame.ref,
          outstanding[joinRef] == frame.topic
        {
          outstanding[joinRef] = nil
        }
        guard frame.event == "phx_reply", let ref = frame.ref else { return }
        guard let topic = outstanding[ref], topic == frame.topic, frame.joinRef == nil || frame.joinRef == ref else {
          return
        }
        outstanding[ref] = nil
        if frame.replyStatus == "ok" { unrung[topic] = now }
      default: break
      }
    case .credentials(.token(let token)): if !token.isEmpty { self.token = token }
    case .credentials(.withdrawn): token = nil
    default: break
    }
  }

  private mutating func violate(_ text: String) { violations.append("\(text), \(context)") }

  private mutating func ended() {
    transport = nil
    isOpen = false
    isClosing = false
    outstanding = [:]
  }

  private mutating func observe(_ effect: ConnectionEffect, _ after: ConnectionStatus, now: UInt64) {
    switch effect {
    case .connect(let id):
      if transport != nil { violate("two transports") }
      if stopped { violate("connects after the stop") }
      transport = id
      attempts.removeAll { $0 + policy.reconnect.budgetWindow <= now }
      attempts.append(now)
      // Hints may add one attempt per spacing, slow probes fewer.
      let spacing = Double(policy.reconnect.budgetWindow) / Double(max(1, policy.reconnect.hintSpacing))
      if attempts.count > policy.reconnect.budget + Int(spacing) + 5 { violate("\(attempts.count) attempts") }
    case .close(let id, _, _):
      if id != transport { violate("closes a transport that is gone") }
      if isClosing { violate("closes twice") }
      isClosing = true
      outstanding = [:]
    case .abandon(let id):
      if id != transport || !isClosing { violate("abandons what is not closing") }
      ended()
    case .send(let id, let frame): observe(frame, id)
    case .ring(let ring):
      if stopped { violate("rings after the stop") }
      if ring.topics.isEmpty { violate("rings for nothing") }
      for topic in ring.topics { unrung[topic.wireName] = nil }
    case .stopped:
      if transport != nil { violate("stopped with a transport") }
      // A start may have come while the old transport was closing.
      stopIsComplete = after.state == .stopped
    case .note(let note):
      if let token, token.utf8.count > 6, "\(note)".contains(token) { violate("a note holds the token") }
    case .schedule(_, let at):
      if at < now { violate("a timer in the past") }
    case .cancel, .requestCredentials: break
    }
  }

  private mutating func observe(_ frame: PhoenixFrame, _ id: TransportID) {
    if id != transport || !isOpen || isClosing { violate("sends \(frame.event) on a transport that is not open") }
    if let ref = frame.ref, !usedRefs.insert(ref).inserted { violate("uses reference \(ref) twice") }
    if frame.ref == nil { violate("sends \(frame.event) without a reference") }
    switch frame.event {
    case "phx_join":
      if outstanding.values.contains(frame.topic) { violate("two joins of \(frame.topic)") }
      if frame.joinRef != frame.ref { violate("a join whose references differ") }
      outstanding[frame.ref ?? ""] = frame.topic
      let sentToken = frame.json?["access_token"]?.stringValue
      if policy.usesCredentials, sentToken == nil { violate("joins without a token") }
      if sentToken != token { violate("joins with an old token") }
      if frame.json?["config"] == nil { violate("joins without config") }
    case "phx_leave":
      outstanding[frame.joinRef ?? ""] = nil
      unrung[frame.topic] = nil
    case "access_token": if frame.json?["access_token"]?.stringValue != token { violate("pushes an old token") }
    default: break
    }
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
    case .transport(let id, let event): "\(id) \("\(event)".prefix(120))"
    case .timer(let token): "timer \(token.kind)"
    }
  }
}
