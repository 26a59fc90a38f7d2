import HostKit
import PhoenixChannels

/// Rules 4 and 5: silence is noticed, delays grow, and the budget holds.
extension MachineRules {
  mutating func checkLiveness(_ step: Step) {
    if step.effects.contains(.note(.heartbeatMissed)) {
      let closes = step.effects.count { if case .close = $0 { true } else { false } }
      if closes != 1 || step.after.state == .open { violate("a missed heartbeat did not close the transport") }
    }
    guard step.after.state == .open, !heartbeats.isEmpty else { return }
    guard let deadline = step.deadline(.answer) else { return violate("a heartbeat is out without a deadline") }
    let isBusy = !outstanding.isEmpty || busyUntil > step.now
    let longest = policy.heartbeat.deadline + (isBusy ? policy.join.deadline : 0)
    if deadline > step.now + longest { violate("waits \((deadline - step.now).inSeconds) s for a heartbeat answer") }
  }

  /// Before the event is taken into the account.
  mutating func checkHints(_ step: Step) {
    guard case .hint(let hint) = step.event, hint != .pathUnsatisfied else { return }
    if step.after.attempt != step.before.attempt { violate("a hint changed the streak") }
    switch step.before.state {
    case .backingOff(let until), .suspended(let until):
      guard case .backingOff(let now) = step.after.state else {
        return violate("a hint did not bring the attempt forward")
      }
      if now > until { violate("a hint put the attempt off") }
      let recent = attempts.count { $0 + policy.reconnect.budgetWindow > step.now }
      if recent < policy.reconnect.budget, now > max(step.now + policy.reconnect.hintSpread, notBefore) {
        violate("a hint left the attempt for later")
      }
    case .open:
      guard outstanding.isEmpty, busyUntil <= step.now else { return }
      guard let deadline = step.deadline(.answer) else {
        // A heartbeat was answered just now; the next one follows soon.
        if let next = step.deadline(.heartbeat), next <= step.now + policy.heartbeat.probeSpacing { return }
        return violate("a hint did not probe")
      }
      if deadline > step.now + policy.heartbeat.probeDeadline { violate("a probe has too much time") }
    case .stopped, .disconnected, .connecting, .awaitingCredentials: break
    }
  }

  mutating func checkDelays(_ step: Step) {
    // Attempts: hints may add one a spacing, slow probes fewer.
    let extra = policy.reconnect.budgetWindow / max(1, policy.reconnect.hintSpacing)
    if attempts.count > policy.reconnect.budget + Int(extra) + 5 { violate("\(attempts.count) attempts in the window") }

    checkStreak(step)
    guard step.after.attempt == step.before.attempt + 1 else { return }
    guard case .backingOff(let until) = step.after.state else { return }
    let delay = delayBound(step)
    let least = delay / 2
    if until < step.now + least || until < notBefore { violate("comes back \((until - step.now).inSeconds) s later") }
    // Everybody was told the same time; some chance comes on top.
    let asked = notBefore > step.now ? notBefore - step.now + policy.reconnect.base : 0
    if until > step.now + max(delay, asked) { violate("comes back only \((until - step.now).inSeconds) s later") }
  }

  /// Upper end of the delay after this failure.
  private func delayBound(_ step: Step) -> UInt64 {
    var delay = policy.reconnect.base
    for _ in 0..<min(step.before.attempt, 64) {
      delay = min(UInt64(Double(delay) * policy.reconnect.factor), policy.reconnect.cap)
    }
    // Any other event makes up for an earlier failure.
    guard case .transport = step.event, step.after.lastFailure?.failureClass == .limit else { return delay }
    return max(delay, policy.reconnect.limitDelay)
  }

  private mutating func checkStreak(_ step: Step) {
    if step.after.attempt > step.before.attempt + 1 { violate("one failure counted twice") }
    if step.after.attempt < step.before.attempt {
      let isStable: Bool
      if case .timer(let token) = step.event, token.kind == .stability { isStable = true } else { isStable = false }
      let since = settledSince.map { step.now - $0 } ?? 0
      let isEarned = isStable && since >= policy.reconnect.stabilityWindow
      if step.after.attempt != 0 || (step.after.state != .stopped && !isEarned) {
        violate("forgot its failures after \(since.inSeconds) s")
      }
    }
    let isSettled =
      step.after.state == .open
      && step.after.topics.allSatisfy { topic in
        if case .denied = topic.state { true } else { topic.state == .joined }
      }
    settledSince = isSettled ? settledSince ?? step.now : nil
  }
}
