import HostKit
import PhoenixChannels

/// One Realtime connection: keeps topics joined and rings their subscribers.
///
/// It lives on the transport's thread. A received broadcast therefore reaches `onRing` without changing threads; the
/// callback must be short and must not block. All decisions are made by `ConnectionMachine`; this actor feeds it and
/// carries out what it says.
///
/// The connection lives as long as it is referenced. Releasing it closes the socket; `stop()` does so and waits.
public actor RealtimeConnection {
  private enum Command: Sendable {
    case feed(ConnectionEvent)
    case subscribe(UInt64, RealtimeSubscription.Listener)
    case unsubscribe(UInt64)
  }

  private struct Inbox {
    var commands: [Command] = []
    var isDraining = false
    var lastSubscription: UInt64 = 0
  }

  private struct Observers {
    var status: RealtimeStatus
    var streams: [UInt64: AsyncStream<RealtimeStatus>.Continuation] = [:]
    var lastStream: UInt64 = 0
  }

  public nonisolated let configuration: RealtimeConfiguration
  private let transport: any RealtimeTransport
  private nonisolated let executor: any SerialExecutor
  private let credentials: (any RealtimeCredentials)?
  private let clock: any HostClock
  private let jitter: @Sendable () -> Double
  private let log: HostLog
  private let serializer: PhoenixSerializer

  private var machine: ConnectionMachine
  private var link: (id: TransportID, connection: any RealtimeTransportConnection)?
  private var timers: [TimerToken: any HostTimer] = [:]
  private var listeners: [UInt64: RealtimeSubscription.Listener] = [:]
  private var credentialsTask: Task<Void, Never>?
  /// When the newest token ends, seconds since 1970, if it says so.
  private var tokenEnd: Int64?
  private var stopWaiters: [CheckedContinuation<Void, Never>] = []
  /// Calls from any thread, in their order.
  private nonisolated let inbox = Locked(Inbox())
  private nonisolated let observers: Locked<Observers>

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Does nothing before `start()`.
  ///
  /// - Parameters:
  ///   - transport: shared or not; its thread becomes this actor's executor.
  ///   - credentials: joins wait for its token. nil joins with the key alone.
  ///   - jitter: chance from 0 up to 1, called on the transport's thread.
  public init(
    _ configuration: RealtimeConfiguration, transport: any RealtimeTransport,
    credentials: (any RealtimeCredentials)? = nil, clock: any HostClock = SystemClock.shared, log: HostLog = .none,
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    var configuration = configuration
    configuration.policy.usesCredentials = credentials != nil
    self.configuration = configuration
    self.transport = transport
    self.credentials = credentials
    self.clock = clock
    self.log = log
    self.jitter = jitter
    executor = transport.executor
    serializer = PhoenixSerializer(configuration.version)
    machine = ConnectionMachine(configuration.policy)
    observers = Locked(Observers(status: machine.status))
  }

  isolated deinit {
    for timer in timers.values { timer.cancel() }
    credentialsTask?.cancel()
    link?.connection.close(code: 1000, reason: "")
    for stream in observers.withLock({ $0.streams.values.map { $0 } }) { stream.finish() }
  }

  // MARK: Calls from any thread

  /// Connects as soon as a topic is wanted. Does nothing when started already.
  public nonisolated func start() { post(.feed(.start)) }

  /// Closes the connection and waits until the socket is gone, at most two seconds. No ring and no status update starts
  /// after it has returned. Subscriptions stay and are joined again by the next `start()`.
  public func stop() async {
    drain()
    credentialsTask?.cancel()
    await withCheckedContinuation { waiter in
      stopWaiters.append(waiter)
      feed(.stop)
    }
  }

  /// Wants topics until the subscription is cancelled. Subscribers share the channel of a topic.
  ///
  /// - Parameters:
  ///   - topics: names without the prefix `realtime:`.
  ///   - onRing: called on the transport's thread after every accepted join, broadcast and readiness notice.
  /// - Throws: `ChannelTopicError` for a name that cannot be sent.
  public nonisolated func subscribe(
    topics: [String], onRing: @escaping @Sendable (RealtimeRing) -> Void
  ) throws(ChannelTopicError) -> RealtimeSubscription {
    var wanted: [ChannelTopic] = []
    for name in topics {
      let topic = try ChannelTopic(name)
      if !wanted.contains(topic) { wanted.append(topic) }
    }
    let listener = RealtimeSubscription.Listener(topics: wanted, onRing: onRing)
    let id = inbox.withLock { inbox -> UInt64 in
      inbox.lastSubscription += 1
      return inbox.lastSubscription
    }
    post(.subscribe(id, listener))
    return RealtimeSubscription(topics: wanted.map(\.name), listener: listener) { [weak self] in
      self?.post(.unsubscribe(id))
    }
  }

  /// Says that now is a good moment to try, or to look whether the peer is still there.
  public nonisolated func hint(_ hint: ConnectionHint) { post(.feed(.hint(hint))) }

  /// Hands over a new access token; joined topics get it at once. nil tells that nobody is signed in any more.
  public nonisolated func setAccessToken(_ token: String?) {
    post(.feed(.credentials(token.map(CredentialUpdate.token) ?? .withdrawn)))
  }

  /// The newest state.
  public nonisolated var status: RealtimeStatus { observers.withLock { $0.status } }

  /// The state now and after each change; counters and round trips alone are no change. A reader that is more
  /// behind than `configuration.statusBacklog` misses the oldest.
  public nonisolated var statusUpdates: AsyncStream<RealtimeStatus> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: RealtimeStatus.self, bufferingPolicy: .bufferingNewest(configuration.statusBacklog))
    let id = observers.withLock { observers -> UInt64 in
      observers.lastStream += 1
      observers.streams[observers.lastStream] = continuation
      continuation.yield(observers.status)
      return observers.lastStream
    }
    continuation.onTermination = { [weak self] _ in
      self?.observers.withLock { _ = $0.streams.removeValue(forKey: id) }
    }
    return stream
  }

  // MARK: Inbox

  private nonisolated func post(_ command: Command) {
    let mustDrain = inbox.withLock { inbox -> Bool in
      inbox.commands.append(command)
      defer { inbox.isDraining = true }
      return !inbox.isDraining
    }
    if mustDrain { Task { await self.drain() } }
  }

  private func drain() {
    let commands = inbox.withLock { inbox -> [Command] in
      defer { inbox.commands = [] }
      inbox.isDraining = false
      return inbox.commands
    }
    for command in commands {
      switch command {
      case .feed(let event): feed(event)
      case .subscribe(let id, let listener): add(id, listener)
      case .unsubscribe(let id): remove(id)
      }
    }
  }

  private func add(_ id: UInt64, _ listener: RealtimeSubscription.Listener) {
    let joined = machine.status.topics.filter { $0.state == .joined }.map(\.topic)
    listeners[id] = listener
    for topic in listener.topics { feed(.subscribe(topic)) }
    // The ring of joins that others had made before was not for this one.
    listener.ring(joined, .joined, receivedAt: 0)
  }

  private func remove(_ id: UInt64) {
    guard let listener = listeners.removeValue(forKey: id) else { return }
    feed(.unsubscribe(listener.topics))
  }

  // MARK: The machine

  private func feed(_ event: ConnectionEvent) {
    if case .credentials(.token(let token)) = event { tokenEnd = UnverifiedToken(token)?.expiresAt }
    let margin = Int64(configuration.renewalMargin / 1_000_000_000)
    if event.mayLeadToJoins, let end = tokenEnd, clock.wallMilliseconds / 1000 + margin >= end {
      tokenEnd = nil
      handle(.credentials(.ending))
    }
    handle(event)
  }

  private func handle(_ event: ConnectionEvent) {
    let effects = machine.handle(event, now: clock.now, jitter: jitter)
    for effect in effects { carryOut(effect) }
    publish()
    // Last, so that nothing comes after `stop()` has returned.
    if effects.contains(.stopped) { stopIsComplete() }
  }

  private func stopIsComplete() {
    let waiters = stopWaiters
    stopWaiters = []
    for waiter in waiters { waiter.resume() }
  }

  private func carryOut(_ effect: ConnectionEffect) {
    switch effect {
    case .connect(let id): connect(id)
    case .close(let id, let code, let reason):
      if link?.id == id { link?.connection.close(code: code, reason: reason) }
    case .abandon(let id): if link?.id == id { link = nil }
    case .send(let id, let frame): send(frame, on: id)
    case .schedule(let token, let deadline): schedule(token, at: deadline)
    case .cancel(let token): timers.removeValue(forKey: token)?.cancel()
    case .requestCredentials(let refresh): requestCredentials(refresh: refresh)
    case .ring(let ring):
      for listener in listeners.values { listener.ring(ring.topics, ring.cause, receivedAt: ring.receivedAt) }
    case .stopped: break
    case .note(let note): note.write(to: log, now: clock.now, server: configuration.endpoint.url.label)
    }
  }

  private func connect(_ id: TransportID) {
    let connection = transport.connect(configuration.request()) { [weak self] event in
      self?.assumeIsolated { $0.received(event, on: id) }
    }
    link = (id, connection)
  }

  private func received(_ event: RealtimeTransportEvent, on id: TransportID) {
    guard link?.id == id else { return }
    if event.isFinal { link = nil }
    feed(.transport(id, translate(event)))
  }

  private func translate(_ event: RealtimeTransportEvent) -> TransportEvent {
    switch event {
    case .opened: .opened
    case .message(let message, let receivedAt):
      .frame(Result { () throws(PhoenixDecodingError) in try serializer.decode(message) }, receivedAt: receivedAt)
    case .messageTooLarge(let bytes): .tooLarge(bytes: bytes)
    case .pong: .pong
    case .refused(let status, let retryAfter, let body):
      .refused(status: status, retryAfterSeconds: retryAfter, body: body)
    case .failed(let failure): .failed(failure.message, isConfiguration: failure.kind == .invalidURL)
    case .closed(let code, let reason): .closed(code: code, reason: reason)
    }
  }

  private func send(_ frame: PhoenixFrame, on id: TransportID) {
    guard let link, link.id == id else { return }
    do {
      link.connection.send(try serializer.encode(frame))
    } catch {
      // Topics are checked when they are subscribed to, so only a mistake of ours leads here.
      log.error("realtime.unsendable", ["event": .string(frame.event), "reason": .string(error.description)])
    }
  }

  /// Members of all it keeps beside the machine: timers, subscribers, calls and readers. It grows with what is wanted and
  /// under way, and with nothing else.
  var heldEntries: Int {
    timers.count + listeners.count + stopWaiters.count + inbox.withLock { $0.commands.count }
      + observers.withLock { $0.streams.count }
  }

  // MARK: Timers

  private func schedule(_ token: TimerToken, at deadline: UInt64) {
    timers[token] = clock.schedule(at: deadline) { [weak self] in
      guard let self else { return }
      Task { await self.fired(token, due: deadline) }
    }
  }

  private func fired(_ token: TimerToken, due: UInt64) {
    // A cancelled timer may already have been on its way.
    guard timers.removeValue(forKey: token) != nil else { return }
    if clock.now > due + configuration.resumeThreshold {
      configuration.onResume?()
      feed(.hint(.resume))
    }
    feed(.timer(token))
  }

  // MARK: Credentials

  private func requestCredentials(refresh: Bool) {
    guard let credentials else { return }
    credentialsTask = Task.detached { [weak self, previous = credentialsTask] in
      // One call at a time, also when a stop and a start came in between.
      await previous?.value
      let update: CredentialUpdate
      do {
        update = try await credentials.accessToken(refresh: refresh).map(CredentialUpdate.token) ?? .withdrawn
      } catch {
        update = .unavailable
      }
      if !Task.isCancelled { await self?.feed(.credentials(update)) }
    }
  }

  // MARK: Status

  private func publish() {
    let status = machine.status
    let streams = observers.withLock { observers -> [AsyncStream<RealtimeStatus>.Continuation] in
      let isChange = !observers.status.isSame(as: status)
      observers.status = status
      return isChange ? Array(observers.streams.values) : []
    }
    // Not under the lock: a reader that is being cancelled holds its task's lock and waits for this one.
    for stream in streams { stream.yield(status) }
  }
}

extension RealtimeTransportEvent {
  /// Nothing follows it.
  fileprivate var isFinal: Bool {
    switch self {
    case .refused, .failed, .closed: true
    case .opened, .message, .messageTooLarge, .pong: false
    }
  }
}

extension ConnectionStatus {
  /// Equal but for what changes all the time.
  fileprivate func isSame(as other: ConnectionStatus) -> Bool {
    var copy = other
    copy.counters = counters
    copy.lastRoundTrip = lastRoundTrip
    return copy == self
  }
}

extension ConnectionEvent {
  fileprivate var mayLeadToJoins: Bool {
    switch self {
    case .transport(_, .opened), .subscribe: true
    case .timer(let token): if case .rejoin = token.kind { true } else { false }
    default: false
    }
  }
}
