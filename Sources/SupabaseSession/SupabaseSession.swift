import HTTPClient
import HostKit

/// The one owner of a user's session: it alone signs in and refreshes, and everybody who needs the access token asks it.
///
/// - Many callers at once cause one request.
/// - A token is replaced a minute before it expires, without being asked, and subscribers get every new one.
/// - Refresh tokens work once. The newest is on the disk before the access token that came with it is used.
/// - An unreachable server is tried again after 1 to 30 s; refused credentials only every few minutes, or when
///   somebody changes them.
///
/// `stop()` ends it. It runs on a thread of its own, because it waits for the disk.
public actor SupabaseSession {
  private struct Waiter {
    let force: Bool
    let continuation: CheckedContinuation<AccessToken, any Error>
  }

  /// What callers may know without coming to the session's thread.
  private struct Snapshot {
    var machine: SessionMachine
    var isStopped = false
  }

  /// The server's calendar, this machine's clock and this machine's calendar at one moment.
  private struct ServerTime: Sendable {
    let date: Int64
    let now: UInt64
    let wallMilliseconds: Int64
  }

  /// The executor; tests with a virtual clock wait for it.
  public nonisolated let thread = SerialThread(name: "kizuna-session")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  private let source: Source
  private let server: ServerURL
  private let publishableKey: String
  private let http: any HTTPTransport
  private nonisolated let clock: any HostClock
  private let store: SessionStore?
  private let log: HostLog
  private let jitter: @Sendable () -> Double
  private nonisolated let subscribers = TokenSubscribers()
  private nonisolated let snapshot: Locked<Snapshot>

  private var machine: SessionMachine {
    didSet { snapshot.withLock { [machine] in $0.machine = machine } }
  }
  private var isStopped = false
  private var isPrepared = false
  private var waiters: [UInt64: Waiter] = [:]
  private var nextWaiter: UInt64 = 0
  private var flight: Task<Void, Never>?
  private var timer: (any HostTimer)?
  private var watch: FileWatch?
  private var reported: SessionFailure?
  /// The newest answer that said what time it is.
  private nonisolated let serverTime = Locked<ServerTime?>(nil)

  /// - Parameters:
  ///   - stateFile: where refresh tokens are kept; the caller makes sure that one process at a time uses it.
  ///   - jitter: a number in 0..<1 for each retry.
  public init(
    source: Source, server: ServerURL, publishableKey: String, http: any HTTPTransport,
    clock: any HostClock = SystemClock.shared, stateFile: String? = nil, log: HostLog = .none,
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    self.source = source
    self.server = server
    self.publishableKey = publishableKey
    self.http = http
    self.clock = clock
    store = stateFile.flatMap { path in
      source.identity.map { SessionStore(path: path, server: server.label, identity: $0, log: log) }
    }
    self.log = log
    self.jitter = jitter
    let machine = source.machine
    self.machine = machine
    snapshot = Locked(Snapshot(machine: machine))
  }

  deinit {
    timer?.cancel()
    watch?.stop()
    thread.stop()
  }

  // MARK: For everybody

  /// A token that is good for at least another minute (a short-lived one: for half of its life), or, when a newer one
  /// cannot be had right now, the present one while it lasts.
  ///
  /// - Parameter refresh: get another token than the present one.
  /// - Throws: `SessionFailure`, or `CancellationError`.
  public nonisolated(nonsending) func accessToken(refresh: Bool = false) async throws -> AccessToken {
    if !refresh {
      let now = clock.now
      // The usual case costs a lock, not a change of threads.
      let fresh = snapshot.withLock { $0.isStopped ? nil : $0.machine.freshToken(at: now) }
      if let fresh { return fresh }
    }
    // Its thread may have ended: nobody would answer there.
    if snapshot.withLock({ $0.isStopped }) { throw Self.stopped }
    return try await obtain(force: refresh)
  }

  /// The present token if it has not expired, without asking anybody for a newer one.
  public nonisolated var currentToken: AccessToken? {
    let now = clock.now
    return snapshot.withLock { !$0.isStopped && $0.machine.isUsable(at: now) ? $0.machine.token : nil }
  }

  /// Why there is no fresh token; nil while all is well.
  public nonisolated var failure: SessionFailure? {
    snapshot.withLock { $0.machine.failure }
  }

  /// Calls `handler` with the present token, if there is one, and with every new one; with nil when the token is over and
  /// there is no other. Calls come in order, on the session's thread; they must be short.
  public nonisolated func onToken(_ handler: @escaping @Sendable (AccessToken?) -> Void) -> SessionSubscription {
    let id = subscribers.add(handler)
    if snapshot.withLock({ $0.isStopped }) { return SessionSubscription(subscribers, id: id) }
    thread.run { [weak self] in
      guard let self, let token = currentToken else { return }
      subscribers.tell(token, only: id)
    }
    return SessionSubscription(subscribers, id: id)
  }

  /// Gets a first token in the background.
  public func start() {
    guard !isStopped else { return }
    prepare()
    if case .attempt(let way) = machine.demand(at: clock.now) { begin(way) }
    settle()
  }

  /// A server refused this token. If it is the present one, another is asked for: once; if that one is refused too, soon
  /// after, the session waits instead.
  public func invalidate(_ token: String) {
    guard !isStopped, machine.token?.value == token, !machine.isRefused else { return }
    let way = machine.invalidate(token, at: clock.now, draw: jitter())
    log.warning(
      "session.token_refused",
      [
        "retry": .bool(way != nil),
        "message": .string(
          way != nil
            ? "the server refused the access token; another is asked for" : "the server refused the access token"),
      ])
    if let way { begin(way) }
    settle()
  }

  /// The network is back, or somebody asked to try again: ends the pause after a failure.
  /// - Parameter afterRefusal: also when the credentials were refused; a token's file is read again in any case.
  public func retryNow(afterRefusal: Bool = false) {
    guard !isStopped else { return }
    if let way = machine.poke(at: clock.now, any: afterRefusal) {
      begin(way)
    } else if afterRefusal, let way = machine.sourceChanged() {
      begin(way)
    }
    settle()
  }

  /// The server's clock as an answer of it told it, milliseconds since 1970. Tokens whose age nobody knows, those of a
  /// file, are judged by it and not by this machine's calendar, which may be wrong or be set meanwhile.
  public nonisolated func noteServerDate(_ milliseconds: Int64) {
    let time = ServerTime(date: milliseconds, now: clock.now, wallMilliseconds: clock.wallMilliseconds)
    serverTime.withLock { $0 = time }
  }

  /// Milliseconds since 1970 by the server's calendar; by this machine's until the server has said what time it is.
  private func serverMilliseconds(at now: UInt64) -> Int64 {
    guard let time = serverTime.withLock({ $0 }) else { return clock.wallMilliseconds }
    return time.date + Int64(clamping: (now - min(now, time.now)) / 1_000_000)
  }

  /// The calendar was set, or the machine slept: checks whether the token is over by the calendar.
  public func calendarChanged() {
    guard !isStopped, let date = machine.token?.expiryDate else { return }
    let offset = serverTime.withLock { $0 }.map { $0.date - $0.wallMilliseconds } ?? 0
    let left = date.subtractingClamped(clock.wallMilliseconds + offset)
    guard left < Int64(AccessToken.margin / 1_000_000) else { return }
    if let way = machine.calendarSaysExpired(at: clock.now) { begin(way) }
    settle()
  }

  /// Ends the session owner, not the session: no request, timer, thread or callback is left afterwards. Callers that wait
  /// get a `SessionFailure` of kind `.stopped`. Idempotent.
  public func stop() async {
    guard !isStopped else { return }
    isStopped = true
    snapshot.withLock { $0.isStopped = true }
    subscribers.removeAll()
    timer?.cancel()
    timer = nil
    watch?.stop()
    watch = nil
    let waiting = waiters.values
    waiters = [:]
    for waiter in waiting { waiter.continuation.resume(throwing: Self.stopped) }
    flight?.cancel()
    await flight?.value
    thread.stop()
  }

  private static let stopped = SessionFailure(.stopped, "the session was stopped")

  // MARK: Attempts

  private func obtain(force: Bool) async throws -> AccessToken {
    if isStopped { throw Self.stopped }
    prepare()
    let answer = machine.demand(at: clock.now, force: force)
    switch answer {
    case .token(let token): return token
    case .failure(let failure): throw failure
    case .wait, .attempt: break
    }
    nextWaiter += 1
    let id = nextWaiter
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        waiters[id] = Waiter(force: force, continuation: continuation)
        if case .attempt(let way) = answer { begin(way) }
        settle()
        if Task.isCancelled { abandon(id) }
      }
    } onCancel: {
      Task { await self.abandon(id) }
    }
  }

  /// The attempt goes on: others may wait for it, and a refresh token that was sent must not be forgotten.
  private func abandon(_ id: UInt64) {
    waiters.removeValue(forKey: id)?.continuation.resume(throwing: CancellationError())
  }

  /// What needs the disk or a thread, once, before the first attempt.
  private func prepare() {
    guard !isPrepared else { return }
    isPrepared = true
    if case .accessTokenFile(let path) = source {
      do {
        watch = try FileWatch(path) { [weak self] in
          Task { await self?.fileChanged() }
        }
      } catch {
        log.warning("session.file_not_watched", ["reason": .string(error.reason)])
      }
    }
    restore()
  }

  private func fileChanged() {
    guard !isStopped else { return }
    if let way = machine.sourceChanged() { begin(way) }
    settle()
  }

  private func begin(_ way: SessionMachine.Way) {
    switch way {
    case .read: read()
    case .signIn, .refresh: flight = Task { await self.exchange(way) }
    }
  }

  private func read() {
    let now = clock.now
    do throws(SessionFailure) {
      let text = try source.read()
      guard let claims = UnverifiedToken(text) else {
        throw SessionFailure(
          .configuration,
          "\(source.tokenName) is not a JSON web token; give the access_token that the sign-in answered")
      }
      let token = AccessToken(
        value: text, claims: claims, receivedAt: now,
        remaining: claims.remaining(at: serverMilliseconds(at: now)))
      if machine.received(token, refreshToken: nil, at: now, draw: jitter()) { publish() }
    } catch {
      machine.failed(error, at: now, draw: jitter())
    }
  }

  private func exchange(_ first: SessionMachine.Way) async {
    var next: SessionMachine.Way? = first
    while let way = next {
      next = nil
      do {
        let request = try source.request(way, server: server, key: publishableKey)
        let response = try await http.send(request)
        guard !isStopped || response.status == 200 else { break }
        if let date = response.serverDate { noteServerDate(date) }
        next = take(TokenGrant(response, way: way, host: server.label), way: way)
      } catch let error as HTTPError {
        machine.failed(TokenGrant.failure(error), at: clock.now, draw: jitter())
      } catch let failure as SessionFailure {
        machine.failed(failure, at: clock.now, draw: jitter())
      } catch {
        // Cancelled by stop().
        machine.failed(Self.stopped, at: clock.now, draw: jitter())
      }
    }
    flight = nil
    if !isStopped { settle() }
  }

  /// - Returns: how to go on when a refresh token was refused.
  private func take(_ grant: TokenGrant, way: SessionMachine.Way) -> SessionMachine.Way? {
    let now = clock.now
    switch grant {
    case .granted(let text, let refreshToken, let expiresIn):
      let claims = UnverifiedToken(text)
      let lifetime = claims?.lifetime ?? TokenGrant.nanoseconds(expiresIn)
      let token = AccessToken(value: text, claims: claims, receivedAt: now, remaining: lifetime)
      if let refreshToken { store?.save(accessToken: text, refreshToken: refreshToken) }
      if machine.received(token, refreshToken: refreshToken, at: now, draw: jitter()), !isStopped {
        log.info(way == .signIn ? "session.signed_in" : "session.refreshed")
        publish()
      }
    case .refused(let failure):
      log.warning("session.refused", ["message": .string(failure.message)])
      // Told now; `report` need not say it again.
      reported = failure
      if let next = machine.refused(failure, way: way, at: now, draw: jitter()) { return next }
    case .failed(let failure):
      machine.failed(failure, at: now, draw: jitter())
    }
    return nil
  }

  private func publish() {
    guard let token = machine.token else { return }
    subscribers.tell(token)
  }

  /// After every event: answers those who wait, announces an end, arms the timer.
  private func settle() {
    if machine.withdrawIfOver(at: clock.now) {
      let reason = machine.failure?.message ?? "the access token has expired, and there is no other"
      log.warning("session.withdrawn", ["message": .string(reason)])
      subscribers.tell(nil)
    }
    if !machine.isAttempting {
      report()
      answerWaiters()
    }
    timer?.cancel()
    timer = machine.nextWake.map { deadline in
      clock.schedule(at: deadline) { [weak self] in
        Task { await self?.timerFired() }
      }
    }
  }

  private func answerWaiters() {
    let waiting = waiters.sorted { $0.key < $1.key }.map(\.value)
    waiters = [:]
    for waiter in waiting {
      if let token = machine.token, machine.isUsable(at: clock.now), machine.failure == nil || !waiter.force {
        waiter.continuation.resume(returning: token)
      } else {
        waiter.continuation.resume(throwing: machine.failure ?? Self.stopped)
      }
    }
  }

  /// The same failure is reported once, until something works in between.
  private func report() {
    guard machine.failure != reported else { return }
    reported = machine.failure
    guard let failure = reported else { return }
    log.warning("session.failed", ["kind": .string(failure.kind.rawValue), "message": .string(failure.message)])
  }

  private func timerFired() {
    guard !isStopped else { return }
    if let way = machine.wake(at: clock.now) { begin(way) }
    settle()
  }

  private func restore() {
    guard let store, let file = store.load() else { return }
    let claims = file.accessToken.flatMap { UnverifiedToken($0.value) }
    let remaining = claims?.remainingIfPlausible(at: clock.wallMilliseconds)
    let token = file.accessToken.flatMap { text in
      remaining.map { AccessToken(value: text.value, claims: claims, receivedAt: clock.now, remaining: $0) }
    }
    machine.restore(token, refreshToken: file.refreshToken)
    if machine.isUsable(at: clock.now) { publish() }
  }
}
