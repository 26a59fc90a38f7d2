import Glibc
import HostKit
import KizunaSync
import SupabaseRealtime
import SupabaseSession

/// Keeps one database in step with the server until it is stopped: session, client, scheduler and doorbell, wired.
///
/// ```swift
/// let gateway = Gateway(configuration)
/// try await gateway.start()
/// let rows = try await gateway.client.from("todos").select().execute()
/// await gateway.stop()
/// ```
///
/// It is what `kizuna-doorbell run` runs, and takes the same lock: a database has one or the other. After `start` it takes
/// care of itself: a network that goes away, a server that restarts and a token that expires cost time only.
public actor Gateway {
  public nonisolated let configuration: GatewayConfiguration
  /// For reads and writes beside the synchronisation.
  public nonisolated let client: KizunaSyncClient
  public nonisolated let session: SupabaseSession
  public nonisolated let connection: RealtimeConnection
  public nonisolated let scheduler: KizunaSyncScheduler

  private enum State {
    case new, running, stopped
  }

  private var state = State.new
  private let signedIn: SignedInClient
  private let parts: GatewayParts
  private let log: HostLog
  private nonisolated let journal: GatewayJournal
  private let recorder: RunRecorder
  private let busy: BusyRetry
  private nonisolated let pacer: Locked<RunPacer>
  private var tokens: SessionSubscription?
  private nonisolated let endings: GatewayEndings

  /// Nanoseconds a run that is under way at `stop` may take to its end; then it is cut off and sent again later.
  private static let settleTime: UInt64 = .seconds(4)

  /// - Parameters:
  ///   - parts: made by `GatewayParts.live` when nil.
  ///   - onTrace: hears of every ring that became rows, with the time of each stage.
  public init(
    _ configuration: GatewayConfiguration, parts: GatewayParts? = nil, log: HostLog = .none,
    onTrace: (@Sendable (RingTrace) -> Void)? = nil
  ) {
    let parts =
      parts
      ?? .live(
        authorityFile: configuration.authorityFile,
        maximumIdle: configuration.pollInterval + configuration.resumeThreshold)
    let signedIn = SignedInClient(configuration, parts: parts, log: log)
    let session = signedIn.session
    let recorder = RunRecorder(database: configuration.database, clock: parts.clock, log: log)
    let journal = GatewayJournal(
      http: signedIn.http, recorder: recorder, clock: parts.clock, log: log, onTrace: onTrace)
    let endings = GatewayEndings()
    var realtime = RealtimeConfiguration(url: configuration.url, apiKey: configuration.publishableKey.value)
    if let url = configuration.realtimeURL { realtime.endpoint = .webSocket(url) }
    realtime.policy = configuration.realtimePolicy
    realtime.resumeThreshold = configuration.resumeThreshold
    let resume = ResumeHints(parts.resumeSource?() ?? KizunaSyncResumeSource()) {
      parts.dropConnections()
      Task { await session.calendarChanged() }
    }
    realtime.onResume = { resume.timerWasLate() }
    let connection = RealtimeConnection(
      realtime, transport: parts.realtime, credentials: SessionCredentials(session), clock: parts.clock, log: log)
    resume.onJump { connection.hint(.resume) }
    self.configuration = configuration
    self.parts = parts
    self.log = log
    self.signedIn = signedIn
    self.journal = journal
    self.recorder = recorder
    self.endings = endings
    self.session = session
    self.connection = connection
    client = signedIn.client
    let pacer = Locked(RunPacer(configuration.runPacing))
    self.pacer = pacer
    let doorbell = PacedDoorbell(
      RealtimeDoorbell(
        connection, log: log,
        onRing: { ring in
          pacer.withLock { $0.rang() }
          journal.rang(ring)
        }), clock: parts.clock)
    signedIn.http.onAnswer { [weak doorbell] in doorbell?.answered($0, $1) }
    let busy = BusyRetry(clock: parts.clock)
    self.busy = busy
    scheduler = KizunaSyncScheduler(
      clock: parts.clock, client: signedIn.client, pollInterval: configuration.pollInterval.inSeconds,
      pathMonitor: parts.pathMonitor?(),
      foregroundSource: resume,
      realtime: doorbell,
      realtimeTables: configuration.tables.keys.sorted(),
      refreshSession: {
        do throws(GatewayError) {
          try await signedIn.signIn()
          return true
        } catch {
          journal.noSession(error)
          if signedIn.isRefusedFromTheStart(error) { endings.end(error) }
          return false
        }
      },
      sync: {
        let now = parts.clock.now
        let start = pacer.withLock { $0.begin(at: now) }
        defer { pacer.withLock { $0.end() } }
        if start > now { try await parts.clock.sleep(nanoseconds: start - now) }
        try await signedIn.sync()
      },
      onError: { [busy] in
        busy.failed($0)
        guard let error = journal.failed($0) else { return }
        if signedIn.isRefusedFromTheStart(error) { endings.end(error) }
      },
      needsReset: {
        guard let checkpoint = try? await signedIn.client.checkpoint() else { return false }
        journal.blocked(checkpoint.softBlocked ? checkpoint.softBlockReason ?? "" : nil)
        return checkpoint.softBlocked
      })
  }

  // MARK: Life

  /// Locks and opens the database, signs in, and begins to synchronise.
  ///
  /// A server that cannot be reached stops only the very first start, where a wrong address is the likely cause; a
  /// database that was in step before is served until the server is back.
  ///
  /// - Parameter isWokenByHangup: the process calls `wake()` on SIGHUP. Then another process may send it one, to ask
  ///   for a run.
  /// - Throws: `GatewayError`; nothing is left running then, and the gateway cannot be started again.
  public func start(isWokenByHangup: Bool = false) async throws(GatewayError) {
    precondition(state == .new, "a gateway is started once")
    state = .running
    let started = SystemClock.monotonic
    do throws(GatewayError) {
      try await signedIn.open()
      recorder.begin(isWokenByHangup ? .wokenByHangup : .deaf)
      do throws(GatewayError) {
        try await signedIn.signIn()
      } catch {
        recorder.failed(startedAt: started, error, code: nil)
        guard error.kind == .unreachable, await wasInStep() else { throw error }
        journal.noSession(error)
      }
    } catch {
      state = .stopped
      await recorder.end()
      await signedIn.close()
      await parts.shutdown()
      throw error
    }
    await client.setUnread { [scheduler] in scheduler.wake(reason: .localWrite) }
    await client.setTrace { [journal] in journal.traced($0) }
    // Ends with the client. One that is open takes subscribers.
    _ = try? await client.on { [journal] in journal.noticed($0) }
    journal.observe(scheduler, connection, session)
    await session.start()
    tokens = session.onToken { [connection, scheduler, journal] token in
      connection.setAccessToken(token?.value)
      if token != nil, journal.hadNoSession() { scheduler.wake(reason: .foreground) }
    }
    busy.begin { [scheduler] in scheduler.wake(reason: .localWrite) }
    scheduler.start()
    log.info("gateway.started", ["tables": .int(configuration.tables.count), "pid": .int(Int(getpid()))])
  }

  private func wasInStep() async -> Bool {
    guard let cursor = try? await client.checkpoint().cursor else { return false }
    return cursor != "0"
  }

  /// Pushes and pulls now, and ends every pause: after refused credentials, before the next attempt to connect.
  public nonisolated func wake() {
    log.info("gateway.woken")
    // A flood of wakes is bounded like one of rings.
    pacer.withLock { $0.rang() }
    connection.hint(.manual)
    guard session.failure != nil || hasTokenFile else { return run() }
    Task { [self] in
      // First: a run that meets a session in its pause would only be told so, and one with an old token refused.
      await session.retryNow(afterRefusal: true)
      run()
    }
  }

  private nonisolated var hasTokenFile: Bool {
    guard case .accessToken(let secret) = configuration.session, case .file = secret.source else { return false }
    return true
  }

  private nonisolated func run() {
    scheduler.wake(reason: .foreground)
    if scheduler.health().phase == .offline { journal.cannotRun() }
  }

  /// Calls `handler` once when the gateway can do nothing any more without a new start. Stop it then.
  ///
  /// That is when its database was deleted or replaced, when the server refuses the credentials on their very first use,
  /// and when the one token it was given has expired or was refused and there is no other way to sign in. Credentials
  /// that were taken once are waited for.
  public nonisolated func onEnd(_ handler: @escaping @Sendable (GatewayError) -> Void) {
    endings.add(handler)
    client.onFileLost { [endings] error in
      endings.end(
        GatewayError(error.code == ErrorCode.storeUnavailable.rawValue ? .locked : .database, error.message))
    }
    guard case .accessToken = configuration.session, !hasTokenFile else { return }
    endings.keep(
      session.onToken { [session, endings] token in
        if token == nil { endings.end(session.failure.map(GatewayError.init) ?? Self.tokenOver) }
      })
  }

  private static let tokenOver = GatewayError(
    .authentication, "the access token has expired or was refused; replace it and start again")

  /// Ends everything within a few seconds. A run under way may settle first; what it does not settle stays queued and is
  /// sent again by the next start, which the server recognises. When this returns, the file may be moved or deleted.
  /// Idempotent.
  public func stop() async {
    guard state == .running else { return }
    state = .stopped
    log.info("gateway.stopping")
    busy.end()
    scheduler.stop()
    tokens?.cancel()
    await settle()
    journal.end()
    await connection.stop()
    await recorder.end()
    await signedIn.close()
    await parts.shutdown()
    log.info("gateway.stopped")
  }

  /// Waits for the run under way, if there is one.
  private func settle() async {
    let isIdle = AsyncStream.makeStream(of: Void.self)
    let end = scheduler.onHealth { health in
      if health.attemptStartedAt == nil { isIdle.continuation.finish() }
    }
    let timer = parts.clock.schedule(after: Self.settleTime) { isIdle.continuation.finish() }
    for await _ in isIdle.stream {}
    timer.cancel()
    end()
  }
}
