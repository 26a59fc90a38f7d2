import HostKit

/// Every decision of the scheduler, without a clock, a thread or a lock: one method per event, each answering what to do.
///
/// The states are few: a timer that is armed or not, a gate that is open or shut, and one slot for an attempt, with at
/// most one trailing run booked behind it.
struct SchedulerMachine: Sendable {
  /// What the runner has to do, in order.
  enum Action: Equatable, Sendable {
    /// Replace the timer by one that fires once after `SchedulerMachine.delay(base:jitter:)`, then report
    /// `timerArmed`. A firing that names another timer is ignored.
    case arm(timer: UInt64, base: UInt64)
    case disarm
    /// Start an attempt and report `attemptFinished` when it has settled.
    case begin(Attempt)
    case publish
  }

  struct Attempt: Equatable, Sendable {
    var number: UInt64
    var reason: KizunaSyncWakeReason
    /// The stamp of the first wake this attempt answers.
    var wokenAt: UInt64
  }

  /// How an attempt ended.
  enum Outcome: Equatable, Sendable {
    case success
    /// Nobody is signed in, or the run was cancelled: neither success nor failure.
    case skipped
    case failure(code: String?, message: String)
  }

  struct Failure: Equatable, Sendable {
    var code: String?
    var message: String
    var at: Int64
  }

  /// The loop as others may see it. Times are milliseconds since 1970.
  struct Snapshot: Equatable, Sendable {
    var phase: KizunaSyncSyncPhase = .idle
    var consecutiveFailures = 0
    var nextAttemptAt: Int64?
    var attemptStartedAt: Int64?
    var lastSuccessAt: Int64?
    var lastError: Failure?
    var needsReset = false
  }

  private struct Slot: Sendable {
    var attempt: Attempt
    var startedAt: Int64
    var pollTicks = 0
    var stalled = false
  }

  /// Backoff never grows beyond this, unless the interval itself is longer.
  static let backoffCap: UInt64 = .seconds(30)

  private(set) var isRunning = false
  private(set) var isGateOpen = true
  private(set) var interval: UInt64
  private var streak = 0
  private var slot: Slot?
  private var trailing: Attempt?
  /// The timer that counts; nil when none is armed.
  private(set) var timer: UInt64?
  private var lastTimer: UInt64 = 0
  private var lastAttempt: UInt64 = 0
  private var nextAttemptAt: Int64?
  private var lastSuccessAt: Int64?
  private var lastError: Failure?
  private var needsReset = false

  /// - Parameter interval: nanoseconds between polls; 0 means no timer.
  init(interval: UInt64) {
    self.interval = interval
  }

  var snapshot: Snapshot {
    Snapshot(
      phase: phase, consecutiveFailures: streak, nextAttemptAt: nextAttemptAt, attemptStartedAt: slot?.startedAt,
      lastSuccessAt: lastSuccessAt, lastError: lastError, needsReset: needsReset)
  }

  private var phase: KizunaSyncSyncPhase {
    if !isGateOpen { return .offline }
    if let slot { return slot.stalled ? .stalled : .syncing }
    return streak > 0 ? .backoff : .idle
  }

  /// The time to the next tick: somewhere in the upper half of `base`.
  /// - Parameter jitter: in [0, 1); anything else is brought into it.
  static func delay(base: UInt64, jitter: Double) -> UInt64 {
    let fraction = jitter.isNaN ? 0 : min(max(jitter, 0), 1)
    let half = base / 2
    return half + UInt64(Double(half) * fraction)
  }

  // MARK: Start and stop

  /// Nothing when already running. Arms the timer; the runner arms the sources and then wakes with `.start`.
  mutating func start() -> [Action] {
    guard !isRunning else { return [] }
    isRunning = true
    return arm() + [.publish]
  }

  /// Disarms the timer, opens the gate without waking, and forgets a booked run. The attempt in flight goes on.
  mutating func stop() -> [Action] {
    isRunning = false
    isGateOpen = true
    trailing = nil
    return disarm() + [.publish]
  }

  // MARK: The gate

  /// A path monitor was armed: nothing runs until its first report.
  mutating func pathMonitorArmed() -> [Action] {
    guard isGateOpen else { return [] }
    isGateOpen = false
    return [.publish]
  }

  /// The path monitor's report, or `true` when it was turned off.
  mutating func pathReported(satisfied: Bool, at wall: Int64, stamp: UInt64) -> [Action] {
    guard satisfied != isGateOpen else { return [] }
    isGateOpen = satisfied
    return satisfied ? wake(.path, at: wall, stamp: stamp) : [.publish]
  }

  // MARK: Wakes

  mutating func wake(_ reason: KizunaSyncWakeReason, at wall: Int64, stamp: UInt64) -> [Action] {
    var actions: [Action] = []
    if reason != .poll, streak > 0 || slot?.stalled == true || lastError != nil {
      streak = 0
      lastError = nil
      slot?.stalled = false
      slot?.pollTicks = 0
      actions += arm()
    }
    lastAttempt += 1
    return actions + run(Attempt(number: lastAttempt, reason: reason, wokenAt: stamp), at: wall)
  }

  private mutating func run(_ attempt: Attempt, at wall: Int64) -> [Action] {
    guard isGateOpen else { return [.publish] }
    guard slot != nil else {
      slot = Slot(attempt: attempt, startedAt: wall)
      return [.begin(attempt), .publish]
    }
    guard attempt.reason == .poll else {
      // The first wake that was not answered is the one whose latency counts.
      trailing = trailing ?? attempt
      return [.publish]
    }
    return countStallTick(of: attempt)
  }

  /// The second tick that finds the same attempt in flight marks it, once.
  private mutating func countStallTick(of attempt: Attempt) -> [Action] {
    guard slot?.stalled == false else { return [] }
    slot?.pollTicks += 1
    guard slot?.pollTicks == 2 else { return [] }
    slot?.stalled = true
    streak += 1
    trailing = trailing ?? attempt
    return arm() + [.publish]
  }

  // MARK: Attempts

  /// The attempt in flight has settled.
  mutating func attemptFinished(_ outcome: Outcome, needsReset: Bool, at wall: Int64) -> [Action] {
    guard slot != nil else { return [] }
    slot = nil
    self.needsReset = needsReset
    let before = streak
    switch outcome {
    case .skipped: break
    case .success:
      streak = 0
      lastSuccessAt = wall
      lastError = nil
    case .failure(let code, let message):
      streak += 1
      lastError = Failure(code: code, message: message, at: wall)
    }
    if let next = trailing {
      trailing = nil
      let actions = run(next, at: wall)
      return arm() + actions
    }
    return (streak == before ? [] : arm()) + [.publish]
  }

  // MARK: Timer

  /// The runner has set the timer it was asked for.
  mutating func timerArmed(_ timer: UInt64, firesAt wall: Int64) {
    if timer == self.timer { nextAttemptAt = wall }
  }

  /// Arms the next tick before attempting, so that an attempt that hangs does not end the ticking.
  /// - Parameter reason: `.foreground` when the timer is so late that the process must have been stopped.
  mutating func timerFired(
    _ timer: UInt64, as reason: KizunaSyncWakeReason = .poll, at wall: Int64, stamp: UInt64
  ) -> [Action] {
    guard timer == self.timer else { return [] }
    return arm() + wake(reason, at: wall, stamp: stamp)
  }

  mutating func setInterval(_ interval: UInt64) -> [Action] {
    self.interval = interval
    return restartTimer()
  }

  /// A new session source deserves a whole interval before the next tick.
  mutating func restartTimer() -> [Action] {
    isRunning ? arm() + [.publish] : []
  }

  private mutating func arm() -> [Action] {
    guard isRunning, interval > 0 else { return disarm() }
    lastTimer += 1
    timer = lastTimer
    return [.arm(timer: lastTimer, base: base)]
  }

  private mutating func disarm() -> [Action] {
    guard timer != nil else { return [] }
    timer = nil
    nextAttemptAt = nil
    return [.disarm]
  }

  private var base: UInt64 {
    guard streak > 0 else { return interval }
    let grown = interval.multipliedReportingOverflow(by: 1 << UInt64(min(streak, 40)))
    return min(grown.overflow ? .max : grown.partialValue, max(interval, Self.backoffCap))
  }
}
