import HostKit
import KizunaSync
import SupabaseRealtime
import SupabaseSession

/// Writes what the parts of a gateway report into the log, one line per event, and follows rings through them.
///
/// Lines hold counts, durations, codes, names of tables and the sentences of `FailureSentence`; never what a database
/// answers, which may quote values.
final class GatewayJournal: Sendable {
  private struct State {
    var tracer = RingTracer()
    var pull: SyncTrace?
    var pulledRows = 0
    var isReady = false
    /// What was last noted of the doorbell.
    var noted: (state: String, reason: String?)?
    var doubt = RefusalDoubt()
    /// Has the connection try again.
    var tryAgain: @Sendable () -> Void = {}
    var wasOffline = false
    /// Runs are skipped because nobody is signed in.
    var lacksSession = false
    /// Why nothing is synchronised any more.
    var block: String?
    /// Why the run that is about to end ends badly.
    var failure: (error: GatewayError, code: String?)?
    var endings: [() -> Void] = []
    var status: Task<Void, Never>?
  }

  private let state: Locked<State>
  private let http: ObservedHTTP
  private let recorder: RunRecorder
  private let clock: any HostClock
  private let log: HostLog
  private let onTrace: (@Sendable (RingTrace) -> Void)?

  init(
    http: ObservedHTTP, recorder: RunRecorder, clock: any HostClock, log: HostLog,
    onTrace: (@Sendable (RingTrace) -> Void)?
  ) {
    self.clock = clock
    state = Locked(State())
    self.http = http
    self.recorder = recorder
    self.log = log
    self.onTrace = onTrace
  }

  // MARK: What the parts report

  /// On the transport's thread.
  func rang(_ ring: RealtimeRing) {
    state.withLock { $0.tracer.rang(receivedAt: ring.receivedAt) }
    log.debug("gateway.rung", ["topics": .int(ring.topics.count), "cause": .string(ring.cause.name)])
  }

  /// An answer was dealt with; on the engine's thread.
  func traced(_ trace: SyncTrace) {
    guard trace.kind == .pull else { return }
    state.withLock { state in
      state.pulledRows += trace.rows
      // The page that closes a checkpoint is the one that makes rows visible.
      if !trace.hasMore { state.pull = trace }
    }
  }

  /// Called after every run, before its end is reported: whether it did anything at all.
  func blocked(_ reason: String?) {
    let isNews = state.withLock { state -> Bool in
      defer { state.block = reason }
      return state.block != reason
    }
    guard isNews, let reason else { return }
    log.error("gateway.blocked", ["code": .string(reason), "reason": .string(SoftBlock.sentence(reason))])
  }

  /// The sync client reported something; on its events' thread.
  func noticed(_ event: KizunaSyncEngineEvent) {
    SyncEventLines.line(for: event)?.write(to: log)
  }

  /// A run ended.
  private func finished(_ run: KizunaSyncRunReport) {
    let isBlocked = state.withLock { $0.block != nil }
    let (trace, rows, failure) = state.withLock { state -> (RingTrace?, Int, (GatewayError, String?)?) in
      defer {
        state.pull = nil
        state.pulledRows = 0
        state.failure = nil
      }
      if run.outcome == .success { state.lacksSession = false }
      let trace = state.tracer.finished(
        .init(
          wokenAt: run.wokenAt, startedAt: run.startedAt, succeeded: run.outcome == .success && state.pulledRows > 0,
          pull: state.pull.map { ($0.requestSentAt, $0.responseReceivedAt) }, committedAt: state.pull?.committedAt ?? 0)
      )
      return (trace, state.pulledRows, state.failure)
    }
    // One that was cut off says nothing about the server or the disk.
    if run.outcome == .success {
      recorder.succeeded(startedAt: run.startedAt, isBlocked: isBlocked)
    } else if let (error, code) = failure {
      recorder.failed(startedAt: run.startedAt, error, code: code)
    }
    if run.outcome == .success, !isBlocked {
      let now = clock.now
      let tryAgain = state.withLock { $0.doubt.pulled(at: now) ? $0.tryAgain : nil }
      if let tryAgain {
        log.info("gateway.refusal_doubted")
        tryAgain()
      }
      let milliseconds = JSONNumber((run.finishedAt - run.startedAt).inMilliseconds.rounded()).map(JSONValue.number)
      // Polls that bring nothing are no news.
      log.log(
        run.reason == .poll && rows == 0 ? .debug : .info, "gateway.synced",
        ["reason": .string(run.reason.rawValue), "rows": .int(rows), "milliseconds": milliseconds ?? nil])
    }
    guard let trace else { return }
    log.info("gateway.ring", trace.logFields)
    onTrace?(trace)
  }

  /// The run under way threw this.
  /// - Returns: what it was; nil when the run was merely cut off.
  @discardableResult
  func failed(_ thrown: any Error) -> GatewayError? {
    guard !(thrown is CancellationError) else { return nil }
    let error = GatewayError(run: thrown, last: http.last)
    let code = (thrown as? KizunaSyncError)?.code
    state.withLock { state in
      state.failure = (error, code)
      // The next token is worth a run at once, as when there was none.
      if error.kind == .authentication { state.lacksSession = true }
    }
    var fields: [(String, JSONValue)] = [
      ("code", .string(code ?? error.code.rawValue)), ("kind", .string(error.kind.rawValue)),
      ("message", .string(error.message)),
    ]
    if case .answered(let status, let code) = http.last?.outcome, !(200..<300).contains(status) {
      fields += [("status", .int(status)), ("server_code", .string(orNull: code))]
    }
    log.log(.warning, "gateway.sync_failed", fields: fields)
    return error
  }

  func noSession(_ error: GatewayError) {
    let isNews = state.withLock { state -> Bool in
      defer {
        state.lacksSession = true
        state.failure = (error, nil)
      }
      return !state.lacksSession
    }
    log.log(
      isNews ? .warning : .debug, "gateway.no_session",
      ["kind": .string(error.kind.rawValue), "reason": .string(error.message)])
  }

  /// A run that was asked for cannot even begin, because the network path is down.
  func cannotRun() {
    recorder.failed(
      startedAt: SystemClock.monotonic,
      GatewayError(.unreachable, "this host has no route to the server; the next run follows when it has one"),
      code: nil)
  }

  /// Whether runs were skipped for want of a session; true once.
  func hadNoSession() -> Bool {
    state.withLock { state in
      defer { state.lacksSession = false }
      return state.lacksSession
    }
  }

  // MARK: Observing

  func observe(_ scheduler: KizunaSyncScheduler, _ connection: RealtimeConnection, _ session: SupabaseSession) {
    let endRuns = scheduler.onRun { [weak self] in self?.finished($0) }
    let endHealth = scheduler.onHealth { [weak self, connection, session] health in
      self?.pathChanged(isOffline: health.phase == .offline, connection, session)
    }
    let status = Task { [weak self] in
      for await status in connection.statusUpdates { self?.connectionChanged(status) }
    }
    let ends = Ends(all: [endRuns, endHealth])
    state.withLock { state in
      state.endings = ends.all
      state.tryAgain = { [weak connection] in connection?.hint(.manual) }
      state.status = status
    }
  }

  private struct Ends: @unchecked Sendable {  // the scheduler's closures only cancel a subscription behind its lock
    let all: [() -> Void]
  }

  func end() {
    let (ends, status) = state.withLock { state -> (Ends, Task<Void, Never>?) in
      defer {
        state.endings = []
        state.tryAgain = {}
        state.status = nil
      }
      return (Ends(all: state.endings), state.status)
    }
    for end in ends.all { end() }
    status?.cancel()
  }

  /// What the scheduler learns about the network concerns the doorbell and the session too.
  private func pathChanged(isOffline: Bool, _ connection: RealtimeConnection, _ session: SupabaseSession) {
    let isChange = state.withLock { state -> Bool in
      defer { state.wasOffline = isOffline }
      return state.wasOffline != isOffline
    }
    guard isChange else { return }
    log.info(isOffline ? "gateway.offline" : "gateway.online")
    connection.hint(isOffline ? .pathUnsatisfied : .pathSatisfied)
    if !isOffline { Task { await session.retryNow() } }
  }

  private func connectionChanged(_ status: RealtimeStatus) {
    let now = clock.now
    let isChange = state.withLock { state -> Bool in
      state.doubt.connectionChanged(isWaiting: status.state == .awaitingCredentials, at: now)
      defer { state.isReady = status.isReady }
      return state.isReady != status.isReady
    }
    let (word, reason) = (status.word, status.isReady ? nil : status.standingReason)
    let isNoted = state.withLock { state in
      defer { state.noted = (word, reason) }
      return state.noted.map { $0 == (word, reason) } ?? false
    }
    if !isNoted { recorder.doorbell(word, reason: reason) }
    guard isChange else { return }
    log.info(status.isReady ? "gateway.ready" : "gateway.not_ready", ["topics": .int(status.topics.count)])
  }
}

extension RealtimeRing.Cause {
  /// For logs and `listen`.
  package var name: String {
    switch self {
    case .joined: "join"
    case .broadcast: "broadcast"
    case .change: "change"
    case .replicationReady: "replication_ready"
    case .oversized: "oversized"
    }
  }
}

extension RingTrace {
  /// The points in nanoseconds of `CLOCK_MONOTONIC`, which other processes of the host can compare with theirs.
  var logFields: KeyValuePairs<String, JSONValue> {
    [
      "frame_received_ns": .int(Int64(clamping: frameReceivedAt)),
      "scheduler_woken_ns": .int(Int64(clamping: wokenAt)), "request_sent_ns": .int(Int64(clamping: requestSentAt)),
      "response_received_ns": .int(Int64(clamping: responseReceivedAt)),
      "committed_ns": .int(Int64(clamping: committedAt)),
    ]
  }
}
