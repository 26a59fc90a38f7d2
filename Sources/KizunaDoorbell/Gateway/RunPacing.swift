import HostKit

/// How often a gateway pulls while the doorbell does not stop ringing.
///
/// A ring is answered at once, and one that comes during a run by another run right behind it. When that goes on, as
/// while somebody writes a table full, each further run begins a little later, so that it answers more rings; the last
/// ring is always answered by a run that began after it.
public struct RunPacing: Sendable, Hashable {
  /// Runs, each woken during the one before, that follow one another without a pause.
  public var streak = 10
  /// From the beginning of one run to the next after such a streak, nanoseconds; 0 never waits. The default bounds a flood
  /// to 50 pulls a second.
  public var spacing: UInt64 = .milliseconds(20)

  public init() {}
}

/// Counts what `RunPacing` speaks of. Pure.
struct RunPacer: Sendable {
  let pacing: RunPacing
  private var isRunning = false
  private var rangMeanwhile = false
  private var streak = 0
  private var begunAt: UInt64 = 0

  init(_ pacing: RunPacing) { self.pacing = pacing }

  mutating func rang() { if isRunning { rangMeanwhile = true } }

  /// A run is about to begin.
  /// - Returns: when it may, on the scale of `now`.
  mutating func begin(at now: UInt64) -> UInt64 {
    streak = rangMeanwhile ? streak + 1 : 0
    rangMeanwhile = false
    isRunning = true
    begunAt = streak < max(1, pacing.streak) ? now : max(now, begunAt + pacing.spacing)
    return begunAt
  }

  mutating func end() { isRunning = false }
}
