import HostKit

/// Every decision of a Realtime connection, as a value: events in, effects out, no clock, no socket, no lock.
///
/// A runner feeds it what happens (`handle`) and carries out the returned effects in their order. The machine owns one
/// transport at a time, the topics on it, and all timers, which are data: the runner schedules them and feeds them back.
///
/// Rules that hold after every event, whatever the peer does:
/// 1. At most one transport exists and at most one reconnect is armed.
/// 2. A wanted topic has at most one join outstanding per transport, and is joined once after each reconnect.
/// 3. A reply, close or error with another join's reference changes nothing.
/// 4. A missed heartbeat answer closes the transport and arms one reconnect.
/// 5. Delays grow to a cap, are drawn from their upper half, and start over only after a stable connection; a budget
///    bounds the attempts of a window.
/// 6. Refused credentials are refreshed once, then new ones are waited for, until a channel has stood for a while.
/// 7. Accepted joins ring their subscribers once, together.
/// 8. After `.stopped` there is no timer, no transport and no ring.
/// 9. What does not parse is counted and ignored; a message dropped for its size still rings.
/// 10. Notes and reports hold no token, key, URL or message body.
///
/// The implementation is spread over one extension per concern; `Parts` holds the pieces that stand alone.
public struct ConnectionMachine: Sendable {
  /// What the machine is after.
  enum Plan: Sendable, Hashable {
    /// → disconnected
    case stopped
    /// Started, nothing wanted. → live, waiting, suspended, awaitingCredentials, stopped
    case disconnected
    /// A transport is connecting or open. → waiting, suspended, awaitingCredentials, disconnected, stopped
    case live
    /// A retry is armed, or due and held up by a transport that is still closing. → live, suspended, …
    case waiting(until: UInt64)
    case suspended(until: UInt64)
    /// → live, waiting
    case awaitingCredentials
  }

  /// The transport. Connecting and open ones belong to the plan `live`; a closing one may outlive any plan.
  enum Link: Sendable, Hashable {
    case none
    case connecting(TransportID)
    case open(TransportID)
    case closing(TransportID)
  }

  public let policy: ConnectionPolicy

  var plan = Plan.stopped
  var link = Link.none
  var channels: [Channel] = []
  var credentials: Credentials
  var timers = TimerBook()
  var schedule = ReconnectSchedule()
  var heartbeat = Heartbeat()
  var serverQueue = ServerQueue()
  var rings = RingCollector()
  var counters = ConnectionCounters()
  var lastFailure: FailureReport?
  var pathSatisfied = true
  /// The connection has been in good order for the stability window.
  var isStable = false
  /// Joins that may be unanswered at once.
  var joinWindow = 1
  /// The server asked to slow down the joins of this connection, or to leave a channel first.
  var joinsHeldUntil: UInt64?
  /// The joins are held because no more channels fit.
  var joinsAwaitRoom = false
  /// What a refused join announced about the close that follows it.
  var announcedClose: FailureReport?
  var lastReplacement: UInt64?
  /// A stop waits for the closing transport, also when a start has come meanwhile.
  var stopIsPending = false
  private var lastTransport: UInt64 = 0
  private var lastRef: UInt64 = 0

  public init(_ policy: ConnectionPolicy = ConnectionPolicy()) {
    self.policy = policy
    credentials = Credentials(required: policy.usesCredentials)
  }

  /// Takes one event and says what to do.
  ///
  /// - Parameters:
  ///   - now: nanoseconds of a clock that never runs backwards and counts time spent suspended.
  ///   - jitter: chance, from 0 up to 1.
  /// - Returns: effects, to be carried out in this order.
  public mutating func handle(
    _ event: ConnectionEvent, now: UInt64, jitter: () -> Double
  ) -> [ConnectionEffect] {
    withoutActuallyEscaping(jitter) { jitter in
      var turn = Turn(now: now, jitter: jitter)
      // First, because the event may end the channel that shows it.
      proveCredentials(turn)
      switch event {
      case .start: start(&turn)
      case .stop: stop(&turn)
      case .subscribe(let topic): subscribe(topic, &turn)
      case .unsubscribe(let topics): for topic in topics { unsubscribe(topic, &turn) }
      case .credentials(let update): receive(update, &turn)
      case .hint(let hint): self.hint(hint, &turn)
      case .transport(let id, let event):
        guard id == transportID else { return [] }
        transport(id, event, &turn)
      case .timer(let token):
        guard let deadline = timers.consume(token) else { return [] }
        timer(token.kind, deadline: deadline, &turn)
      }
      if plan != .stopped { tidyUp(&turn) }
      return turn.effects
    }
  }

  // MARK: Start and stop

  private mutating func start(_ turn: inout Turn) {
    guard plan == .stopped else { return }
    plan = .disconnected
    credentials.restart()
    if credentials.required, credentials.token == nil { askCredentials(fresh: false, &turn) }
    connectIfWanted(&turn)
  }

  private mutating func stop(_ turn: inout Turn) {
    if plan != .stopped {
      plan = .stopped
      endLink(code: 1000, reason: "", &turn)
      // What was accepted but not rung is dropped: nobody may be called any more.
      rings = RingCollector()
      timers.cancelAll(except: [.close], &turn)
      for index in channels.indices { channels[index].phase = .idle }
      credentials.isAsking = false
      schedule.clearStreak()
      lastFailure = nil
    }
    if link == .none { turn.effects.append(.stopped) } else { stopIsPending = true }
  }

  // MARK: After every event

  /// Brings what follows from the state, rather than from an event, up to date.
  private mutating func tidyUp(_ turn: inout Turn) {
    tidyIdle(&turn)
    tidyCredentials(&turn)
    sendJoins(&turn)
    tidyRings(&turn)
    tidyStability(&turn)
    tidyAnswerDeadline(&turn)
  }

  /// Keeps no connection and plans none when nobody wants a topic.
  private mutating func tidyIdle(_ turn: inout Turn) {
    guard channels.isEmpty else { return timers.cancel(.idle, &turn) }
    switch plan {
    case .live:
      if !timers.isArmed(.idle) { timers.arm(.idle, at: turn.now + policy.idleLinger, &turn) }
    case .waiting, .suspended, .awaitingCredentials:
      timers.cancel(.reconnect, &turn)
      plan = .disconnected
    case .stopped, .disconnected: break
    }
  }

  private mutating func tidyStability(_ turn: inout Turn) {
    guard case .open = link, channels.allSatisfy(\.isSettled) else {
      timers.cancel(.stability, &turn)
      isStable = false
      return
    }
    if !isStable, !timers.isArmed(.stability) {
      timers.arm(.stability, at: turn.now + policy.reconnect.stabilityWindow, &turn)
    }
  }

  // MARK: Timers

  private mutating func timer(_ kind: TimerToken.Kind, deadline: UInt64, _ turn: inout Turn) {
    switch kind {
    case .reconnect: reconnectDue(&turn)
    case .handshake: handshakeOverdue(&turn)
    case .close: closeOverdue(&turn)
    case .heartbeat: heartbeatDue(&turn)
    case .answer: answerOverdue(since: deadline, &turn)
    case .stability:
      isStable = true
      schedule.clearStreak()
      lastFailure = nil
    case .idle:
      plan = .disconnected
      endLink(code: 1000, reason: "", &turn)
    case .credentials: askCredentials(fresh: credentials.wantsFresh, &turn)
    case .ring: flushRings(&turn)
    case .joinHold:
      joinsHeldUntil = nil
      joinsAwaitRoom = false
    case .join(let topic): joinOverdue(topic, &turn)
    case .rejoin(let topic):
      if let index = index(of: topic) { channels[index].phase = .idle }
    }
  }

  // MARK: Numbers

  mutating func nextRef() -> String {
    lastRef += 1
    return String(lastRef)
  }

  mutating func nextTransport() -> TransportID {
    lastTransport += 1
    return TransportID(lastTransport)
  }

  /// The transport that exists; nil when there is none.
  private var transportID: TransportID? {
    switch link {
    case .none: nil
    case .connecting(let id), .open(let id), .closing(let id): id
    }
  }

  /// The open transport; nil when there is none.
  var openTransport: TransportID? {
    if case .open(let id) = link { id } else { nil }
  }

  func index(of topic: ChannelTopic) -> Int? { channels.firstIndex { $0.topic == topic } }
}
