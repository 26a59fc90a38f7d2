/// Delays between attempts, and the budget that bounds them.
struct ReconnectSchedule: Sendable {
  /// Failures since the last stable connection.
  private(set) var streak = 0
  /// Answers "500" since the last accepted upgrade.
  var serverErrors = 0
  /// The server said not to come back before then.
  private(set) var notBefore: UInt64 = 0
  /// Times of the attempts the budget may still have to count, oldest first.
  private var attempts: [UInt64] = []

  var lastAttempt: UInt64? { attempts.last }

  mutating func recordAttempt(at now: UInt64, _ policy: ReconnectPolicy) {
    attempts.removeAll { $0 + policy.budgetWindow <= now }
    attempts.append(now)
  }

  func isSpent(at now: UInt64, _ policy: ReconnectPolicy) -> Bool {
    attempts.count { $0 + policy.budgetWindow > now } >= policy.budget
  }

  /// Counts one failure and draws the delay that follows it.
  mutating func nextDelay(
    after failureClass: FailureClass, retryAfterSeconds: Int?, _ policy: ReconnectPolicy, _ turn: Turn
  ) -> UInt64 {
    var delay = Backoff.delay(base: policy.base, factor: policy.factor, cap: policy.cap, failuresBefore: streak)
    if failureClass == .limit { delay = max(delay, policy.limitDelay) }
    streak += 1
    var drawn = turn.upperHalf(delay)
    if let seconds = retryAfterSeconds, seconds > 0 {
      let asked = min(UInt64(min(seconds, 1_000_000)) * 1_000_000_000, policy.maximumRetryAfter)
      notBefore = turn.now + asked
      // Everybody was told the same number, so some chance comes on top.
      drawn = max(drawn, asked + turn.upTo(policy.base))
    }
    return drawn
  }

  /// Draws the delay of the last failure once more, for a connection that was not wanted for a while; 0 without failures.
  func delayAgain(_ policy: ReconnectPolicy, _ turn: Turn) -> UInt64 {
    guard streak > 0 else { return 0 }
    return turn.upperHalf(
      Backoff.delay(base: policy.base, factor: policy.factor, cap: policy.cap, failuresBefore: streak - 1))
  }

  mutating func clearStreak() {
    streak = 0
    serverErrors = 0
  }
}
