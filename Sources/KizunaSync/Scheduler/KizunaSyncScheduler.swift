import Foundation
import HostKit

/// The loop beside one client: it syncs once when it starts, after every local write, on its own timer, when the network
/// path comes back, when the host wakes from suspend, and when a doorbell rings.
///
/// Before each run it calls ``refreshSession`` and runs only when that answers true. Runs never overlap: any number of
/// wakes during one run become a single trailing run. All decisions are `SchedulerMachine`'s; this class owns the timer,
/// the sources and the handlers. Every member may be used from any thread; no run loop is needed.
///
/// Health handlers and `onError` run on whatever thread found the change, and must be quick.
public final class KizunaSyncScheduler: @unchecked Sendable {  // everything mutable is behind `state` and `hooks`
  private struct State: Sendable {
    var machine: SchedulerMachine
    var timer: (any HostTimer)?
    var sources = SchedulerSources()
    /// Grows with every start and stop; reports that carry an older one are ignored.
    var generation: UInt64 = 0
    /// The same for the path monitor alone, which may be turned off and on in between.
    var pathGeneration: UInt64 = 0
    var monitorPath: Bool
    var pollInterval: TimeInterval
  }

  private let state: Locked<State>
  private let hooks: Locked<SchedulerHooks>
  private let healthHandlers = OrderedHandlers<KizunaSyncSyncHealth>()
  private let runHandlers = OrderedHandlers<KizunaSyncRunReport>()
  private let client: KizunaSyncClient
  private let clock: any HostClock
  private let jitter: @Sendable () -> Double
  private let pathMonitor: any KizunaSyncPathMonitor
  private let foregroundSource: (any KizunaSyncForegroundSource)?
  private let realtime: (any KizunaSyncRealtimeWakeup)?
  private let realtimeTables: [String]

  /// - Parameters:
  ///   - pollInterval: seconds between polls; 0 or less means no timer.
  ///   - monitorPath: hold every run while the network path is unsatisfied.
  ///   - pathMonitor: the source of the path; by default the host's routing table.
  ///   - observeForeground: wake when the host comes back from suspend.
  ///   - foregroundSource: takes the place of that source.
  ///   - realtime: the doorbell. Subscribed once, with the topics of `realtimeTables`.
  ///   - refreshSession: called before every run; false skips the run.
  ///   - sync: what a run does; by default the client's ``KizunaSyncClient/sync()``.
  ///   - onError: hears what a run threw, and a refused local-write subscription.
  ///   - jitterSource: a fraction in [0, 1), drawn at every arming of the timer.
  ///   - needsReset: read after every attempt and published in ``health()``.
  public convenience init(
    client: KizunaSyncClient, pollInterval: TimeInterval = 15, monitorPath: Bool = true,
    pathMonitor: KizunaSyncPathMonitor? = nil, observeForeground: Bool = true,
    foregroundSource: KizunaSyncForegroundSource? = nil, realtime: KizunaSyncRealtimeWakeup? = nil,
    realtimeTables: [String] = [], refreshSession: @escaping () async -> Bool, sync: (() async throws -> Void)? = nil,
    onError: ((Error) -> Void)? = nil, jitterSource: @Sendable @escaping () -> Double = { Double.random(in: 0..<1) },
    needsReset: (@Sendable () async -> Bool)? = nil
  ) {
    self.init(
      clock: SystemClock.shared, client: client, pollInterval: pollInterval, monitorPath: monitorPath,
      pathMonitor: pathMonitor, observeForeground: observeForeground, foregroundSource: foregroundSource,
      realtime: realtime, realtimeTables: realtimeTables, refreshSession: refreshSession, sync: sync, onError: onError,
      jitterSource: jitterSource, needsReset: needsReset)
  }

  /// The same with a clock of the caller's choosing, for tests.
  public init(
    clock: any HostClock, client: KizunaSyncClient, pollInterval: TimeInterval = 15, monitorPath: Bool = true,
    pathMonitor: KizunaSyncPathMonitor? = nil, observeForeground: Bool = true,
    foregroundSource: KizunaSyncForegroundSource? = nil, realtime: KizunaSyncRealtimeWakeup? = nil,
    realtimeTables: [String] = [], refreshSession: @escaping () async -> Bool, sync: (() async throws -> Void)? = nil,
    onError: ((Error) -> Void)? = nil, jitterSource: @Sendable @escaping () -> Double = { Double.random(in: 0..<1) },
    needsReset: (@Sendable () async -> Bool)? = nil
  ) {
    self.clock = clock
    self.client = client
    self.jitter = jitterSource
    self.pathMonitor = pathMonitor ?? KizunaSyncNetworkPathMonitor()
    (self.pathMonitor as? KizunaSyncNetworkPathMonitor)?.follow({ [client] in client.serverAddress }, clock: clock)
    self.foregroundSource = observeForeground ? foregroundSource ?? KizunaSyncResumeSource() : nil
    self.realtime = realtime
    self.realtimeTables = realtimeTables
    hooks = Locked(
      SchedulerHooks(
        refreshSession: refreshSession, sync: sync ?? { try await client.sync() }, onError: onError,
        needsReset: needsReset))
    state = Locked(
      State(
        machine: SchedulerMachine(interval: Self.nanoseconds(pollInterval)), monitorPath: monitorPath,
        pollInterval: pollInterval))
  }

  deinit {
    let (sources, timer) = state.withLock { ($0.sources, $0.timer) }
    timer?.cancel()
    sources.end()
  }

  private static func nanoseconds(_ interval: TimeInterval) -> UInt64 {
    // A year is as good as never; it also keeps the arithmetic far from overflow.
    guard interval > 0 else { return 0 }
    return .seconds(min(interval, 365 * 86_400))
  }

  // MARK: Settings

  /// Seconds between polls. Assigning it restarts a running timer.
  public var pollInterval: TimeInterval {
    get { state.withLock { $0.pollInterval } }
    set {
      perform { state in
        state.pollInterval = newValue
        return state.machine.setInterval(Self.nanoseconds(newValue))
      }
    }
  }

  /// Called before every run; false skips it. Assigning it restarts a running timer.
  public var refreshSession: () async -> Bool {
    get { hooks.withLock { $0 }.refreshSession }
    set {
      let new = HandedClosure(value: newValue)
      hooks.withLock { $0.refreshSession = new.value }
      perform { $0.machine.restartTimer() }
    }
  }

  /// What a run does.
  public var sync: () async throws -> Void {
    get { hooks.withLock { $0 }.sync }
    set {
      let new = HandedClosure(value: newValue)
      hooks.withLock { $0.sync = new.value }
    }
  }

  /// Hears what a run threw.
  public var onError: ((any Error) -> Void)? {
    get { hooks.withLock { $0 }.onError }
    set {
      let new = HandedClosure(value: newValue)
      hooks.withLock { $0.onError = new.value }
    }
  }

  /// Whether runs are held while the path is unsatisfied. Turning it off on a running scheduler ends the monitor and
  /// opens the gate; turning it on arms the monitor again.
  public var monitorPath: Bool {
    get { state.withLock { $0.monitorPath } }
    set {
      let (running, generation, old) = state.withLock { state -> (Bool, UInt64, (any KizunaSyncPathMonitor)?) in
        guard state.monitorPath != newValue else { return (false, 0, nil) }
        state.monitorPath = newValue
        let old = newValue ? nil : SchedulerSources(path: state.sources.path)
        if !newValue {
          state.sources.path = nil
          state.pathGeneration += 1
        }
        return (state.machine.isRunning, state.generation, old?.path)
      }
      old?.cancel()
      guard running else { return }
      if newValue { armPathMonitor(generation: generation) } else { reportPath(satisfied: true, generation: nil) }
    }
  }

  // MARK: Start and stop

  /// Arms the timer and every source, then wakes a run. Does nothing when already started.
  public func start() {
    var generation: UInt64?
    perform { state in
      guard !state.machine.isRunning else { return [] }
      state.generation += 1
      generation = state.generation
      return state.machine.start()
    }
    guard let generation else { return }
    if monitorPath { armPathMonitor(generation: generation) }
    armForeground(generation: generation)
    armRealtime(generation: generation)
    armLocalWrites(generation: generation)
    wake(.start, generation: generation)
  }

  /// Disarms the timer and every source. A run in flight goes on to its end; ``wake(reason:)`` still runs once.
  public func stop() {
    var sources = SchedulerSources()
    perform { state in
      state.generation += 1
      state.pathGeneration += 1
      sources = state.sources
      state.sources = SchedulerSources()
      return state.machine.stop()
    }
    sources.end()
  }

  // MARK: Wakes

  /// Runs now, or once more after the run in flight.
  public func wake(reason: KizunaSyncWakeReason = .doorbell) {
    wake(reason, generation: nil)
  }

  /// For an app that turned the foreground source off.
  public func notifyForeground() {
    wake(reason: .foreground)
  }

  /// For an app that watches the network itself.
  public func notifyOnline() {
    wake(reason: .path)
  }

  private func wake(_ reason: KizunaSyncWakeReason, generation: UInt64?) {
    let stamp = SystemClock.monotonic
    let wall = clock.wallMilliseconds
    perform { state in
      guard generation == nil || generation == state.generation else { return [] }
      return state.machine.wake(reason, at: wall, stamp: stamp)
    }
  }

  private func reportPath(satisfied: Bool, generation: UInt64?) {
    let stamp = SystemClock.monotonic
    let wall = clock.wallMilliseconds
    perform { state in
      guard generation == nil || generation == state.pathGeneration else { return [] }
      return state.machine.pathReported(satisfied: satisfied, at: wall, stamp: stamp)
    }
  }

  // MARK: Sources

  private func armPathMonitor(generation: UInt64) {
    let monitor = pathMonitor
    // The host's own monitor calls everything but a clear "no" satisfied, so the gate may stay open until it speaks.
    let shutsGate = !(monitor is KizunaSyncNetworkPathMonitor)
    var pathGeneration: UInt64 = 0
    var armed = false
    perform { state in
      guard state.generation == generation, state.monitorPath else { return [] }
      state.pathGeneration += 1
      pathGeneration = state.pathGeneration
      armed = true
      return shutsGate ? state.machine.pathMonitorArmed() : []
    }
    guard armed else { return }
    let expected = pathGeneration
    monitor.start { [weak self] satisfied in self?.reportPath(satisfied: satisfied, generation: expected) }
    keep(SchedulerSources(path: monitor)) { $0.generation == generation && $0.pathGeneration == expected }
  }

  private func armForeground(generation: UInt64) {
    guard let source = foregroundSource else { return }
    source.start { [weak self] in self?.wake(.foreground, generation: generation) }
    keep(SchedulerSources(foreground: source)) { $0.generation == generation }
  }

  private func armRealtime(generation: UInt64) {
    guard let realtime, !realtimeTables.isEmpty else { return }
    let subscription = realtime.subscribe(topics: realtimeTables.map { "kizunasync:\($0)" }) { [weak self] in
      self?.wake(.doorbell, generation: generation)
    }
    keep(SchedulerSources(realtime: subscription)) { $0.generation == generation }
  }

  private func armLocalWrites(generation: UInt64) {
    do {
      let unsubscribe = try client.subscribe { [weak self] event in
        if case .queueDepth(let depth) = event, depth > 0 { self?.wake(.localWrite, generation: generation) }
      }
      keep(SchedulerSources(localWrites: unsubscribe)) { $0.generation == generation }
    } catch {
      hooks.withLock { $0 }.onError?(error)
    }
  }

  /// Remembers a source that was just started, or ends it when `stop` was quicker.
  private func keep(_ new: SchedulerSources, while isWanted: @Sendable (State) -> Bool) {
    let late = state.withLock { state -> Bool in
      guard isWanted(state) else { return true }
      state.sources.add(new)
      return false
    }
    if late { new.end() }
  }

  // MARK: Health

  /// The loop as it is now.
  public func health() -> KizunaSyncSyncHealth {
    KizunaSyncSyncHealth(state.withLock { $0.machine.snapshot })
  }

  /// Calls `handler` at once and then at every change, in order.
  /// - Returns: a closure that ends the calls.
  public func onHealth(_ handler: @escaping @Sendable (KizunaSyncSyncHealth) -> Void) -> () -> Void {
    healthHandlers.add(first: health(), handler)
  }

  /// Calls `handler` after every run, for whoever measures latency.
  /// - Returns: a closure that ends the calls.
  public func onRun(_ handler: @escaping @Sendable (KizunaSyncRunReport) -> Void) -> () -> Void {
    runHandlers.add(first: nil, handler)
  }

  // MARK: Carrying out what the machine decides

  private func perform(_ event: (inout State) -> [SchedulerMachine.Action]) {
    let actions = state.withLock { event(&$0) }
    for action in actions {
      switch action {
      case .arm(let timer, let base): arm(timer, base: base)
      case .disarm: disarm()
      case .begin, .publish: break
      }
    }
    if actions.contains(.publish) {
      // Queued under the lock, so that snapshots leave in the order they were true; before the attempt begins, so that
      // a quick one cannot hide that it ran.
      state.withLock { healthHandlers.enqueue(KizunaSyncSyncHealth($0.machine.snapshot)) }
    }
    for case .begin(let attempt) in actions { begin(attempt) }
    healthHandlers.deliver()
  }

  private func arm(_ timer: UInt64, base: UInt64) {
    let delay = SchedulerMachine.delay(base: base, jitter: jitter())
    let wall = clock.wallMilliseconds + Int64(delay / 1_000_000)
    let deadline = clock.now + delay
    let armed = clock.schedule(at: deadline) { [weak self] in self?.timerFired(timer, deadline: deadline) }
    let obsolete = state.withLock { state -> (any HostTimer)? in
      guard state.machine.timer == timer else { return armed }
      defer { state.timer = armed }
      state.machine.timerArmed(timer, firesAt: wall)
      return state.timer
    }
    obsolete?.cancel()
  }

  private func disarm() {
    let obsolete = state.withLock { state -> (any HostTimer)? in
      guard state.machine.timer == nil else { return nil }
      defer { state.timer = nil }
      return state.timer
    }
    obsolete?.cancel()
  }

  /// A timer that fires this late means that the process was stopped: it comes back to the foreground.
  static let latenessOfResume: UInt64 = .seconds(30)

  private func timerFired(_ timer: UInt64, deadline: UInt64) {
    let stamp = SystemClock.monotonic
    let wall = clock.wallMilliseconds
    let wasAway = foregroundSource is any ResumeDetector && clock.now >= deadline + Self.latenessOfResume
    perform { state in
      state.machine.timerFired(timer, as: wasAway ? .foreground : .poll, at: wall, stamp: stamp)
    }
  }

  /// One hop: the closures are asynchronous, so they need a task. It prefers the thread of the client's engine, where the
  /// run leads anyway; a closure that is isolated to an actor runs there as always.
  private func begin(_ attempt: SchedulerMachine.Attempt) {
    Task.detached(executorPreference: client.executorPreference, priority: .high) { await self.run(attempt) }
  }

  private func run(_ attempt: SchedulerMachine.Attempt) async {
    let startedAt = SystemClock.monotonic
    var syncStartedAt: UInt64?
    var outcome = SchedulerMachine.Outcome.skipped
    let hooks = hooks.withLock { $0 }
    if await hooks.refreshSession() {
      syncStartedAt = SystemClock.monotonic
      do {
        try await hooks.sync()
        outcome = .success
      } catch is CancellationError {
        outcome = .skipped
      } catch {
        outcome = .failure(code: (error as? KizunaSyncError)?.code, message: Self.message(of: error))
        hooks.onError?(error)
      }
    }
    let needsReset = await hooks.needsReset?() ?? false
    let report = KizunaSyncRunReport(
      reason: attempt.reason, wokenAt: attempt.wokenAt, startedAt: startedAt, syncStartedAt: syncStartedAt,
      finishedAt: SystemClock.monotonic, outcome: .init(outcome))
    let wall = clock.wallMilliseconds
    let result = outcome
    perform { $0.machine.attemptFinished(result, needsReset: needsReset, at: wall) }
    runHandlers.publish(report)
  }

  private static func message(of error: any Error) -> String {
    (error as? KizunaSyncError)?.message ?? String(describing: error)
  }
}
