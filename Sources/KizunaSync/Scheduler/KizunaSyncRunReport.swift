/// One run of the scheduler, for whoever measures latency. Times are `CLOCK_MONOTONIC` nanoseconds.
public struct KizunaSyncRunReport: Equatable, Sendable {
  public enum Outcome: String, Sendable {
    case success, skipped, failure
  }

  public let reason: KizunaSyncWakeReason
  /// When the first wake arrived that this run answers.
  public let wokenAt: UInt64
  /// When the run began, before the session was refreshed.
  public let startedAt: UInt64
  /// When `sync` was called; nil when the run was skipped.
  public let syncStartedAt: UInt64?
  public let finishedAt: UInt64
  public let outcome: Outcome
}

extension KizunaSyncRunReport.Outcome {
  init(_ outcome: SchedulerMachine.Outcome) {
    switch outcome {
    case .success: self = .success
    case .skipped: self = .skipped
    case .failure: self = .failure
    }
  }
}
