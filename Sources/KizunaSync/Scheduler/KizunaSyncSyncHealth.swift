import Foundation

/// Why the scheduler looked. Every reason but `poll` also clears a failure streak.
public enum KizunaSyncWakeReason: String, Sendable {
  case poll, foreground, path, doorbell, localWrite, start
}

/// What the scheduler is doing; the first that holds, in the order offline, stalled or syncing, backoff, idle.
public enum KizunaSyncSyncPhase: String, Sendable {
  case idle, syncing, backoff, stalled, offline
}

/// The last failed attempt.
public struct KizunaSyncSyncHealthError: Equatable, Sendable {
  /// The catalogue code of a `KizunaSyncError`; nil for other errors and for stalls.
  public let code: String?
  public let message: String
  public let at: Date

  public init(code: String?, message: String, at: Date) {
    self.code = code
    self.message = message
    self.at = at
  }
}

/// A snapshot of the loop.
public struct KizunaSyncSyncHealth: Equatable, Sendable {
  public var phase: KizunaSyncSyncPhase
  public var consecutiveFailures: Int
  /// When the timer fires next; nil without a timer.
  public var nextAttemptAt: Date?
  /// When the attempt in flight began.
  public var attemptStartedAt: Date?
  public var lastSuccessAt: Date?
  public var lastError: KizunaSyncSyncHealthError?
  /// What the `needsReset` closure said after the last attempt.
  public var needsReset: Bool = false
}

extension KizunaSyncSyncHealth {
  init(_ snapshot: SchedulerMachine.Snapshot) {
    func date(_ wall: Int64) -> Date { Date(timeIntervalSince1970: Double(wall) / 1000) }
    self.init(
      phase: snapshot.phase, consecutiveFailures: snapshot.consecutiveFailures,
      nextAttemptAt: snapshot.nextAttemptAt.map(date), attemptStartedAt: snapshot.attemptStartedAt.map(date),
      lastSuccessAt: snapshot.lastSuccessAt.map(date),
      lastError: snapshot.lastError.map { .init(code: $0.code, message: $0.message, at: date($0.at)) },
      needsReset: snapshot.needsReset)
  }
}
