import HTTPClient
import HostKit

/// How long rings are held back while the server asks for patience: a busy table rings many times a second, and each ring
/// would be a pull that is refused again. Pure.
///
/// Polls, local writes and people are not held: they have the scheduler's own pauses, or none on purpose.
struct RingHold {
  /// The pause after the first refusal that names none, nanoseconds; doubled by each further one, up to `longest`.
  static let first: UInt64 = .seconds(1)
  static let longest: UInt64 = .seconds(30)
  /// A longer `Retry-After` is cut to this, nanoseconds.
  static let longestAsked: UInt64 = .seconds(300)

  /// Rings wait until then, on the scale of the clock.
  private(set) var until: UInt64 = 0
  private var streak = 0
  /// A ring came meanwhile.
  private(set) var isPending = false

  /// What is to be done about a ring.
  enum Verdict: Equatable {
    case ring
    /// This is the first one that waits: come back then.
    case wait(until: UInt64)
    /// Another one waits already.
    case drop
  }

  mutating func rang(at now: UInt64) -> Verdict {
    guard now < until else { return .ring }
    if isPending { return .drop }
    isPending = true
    return .wait(until: until)
  }

  /// The time has come, or the server is well again.
  /// - Returns: whether to ring now; when not, and one is pending, come back at `until`.
  mutating func due(at now: UInt64) -> Bool {
    guard isPending, now >= until else { return false }
    isPending = false
    return true
  }

  /// The server answered a call.
  ///
  /// - Parameters:
  ///   - endsRun: a good answer shows that the server is well; one to a push does not yet, since the pull is to come.
  ///   - retryAfter: seconds.
  mutating func answered(status: Int, endsRun: Bool, retryAfter: Int?, at now: UInt64) {
    switch status {
    case 429, 500...:
      // While rings are held, only a person or the poll asks; that must not make the pause longer and longer.
      if now >= until { streak = min(streak + 1, 32) }
      var pause = min(Self.first << UInt64(min(max(streak, 1) - 1, 10)), Self.longest)
      if let retryAfter, retryAfter > 0 {
        pause = max(pause, min(UInt64(retryAfter).multipliedClamped(by: 1_000_000_000), Self.longestAsked))
      }
      until = max(until, now.addingClamped(pause))
    case 200..<300 where endsRun:
      streak = 0
      until = 0
    default: break
    }
  }
}
