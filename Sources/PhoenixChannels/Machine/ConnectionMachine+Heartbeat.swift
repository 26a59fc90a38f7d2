import HostKit

/// Liveness.
extension ConnectionMachine {
  /// When the joins were sent that keep the server from answering, also those that are no longer waited for.
  private func unansweredJoins(_ turn: Turn) -> [UInt64] {
    let current = channels.compactMap { channel -> UInt64? in
      if case .joining(_, let sentAt) = channel.phase { sentAt } else { nil }
    }
    return current + serverQueue.joins(at: turn.now)
  }

  mutating func armHeartbeat(_ turn: inout Turn) {
    let delay = turn.around(policy.heartbeat.interval, share: policy.heartbeat.spread)
    timers.arm(.heartbeat, at: turn.now + delay, &turn)
  }

  /// Sent also while an older one is unanswered: the server counts the bytes it gets, not the answers it gives.
  mutating func heartbeatDue(_ turn: inout Turn) {
    sendHeartbeat(within: policy.heartbeat.deadline, &turn)
    armHeartbeat(&turn)
  }

  private mutating func sendHeartbeat(within deadline: UInt64, _ turn: inout Turn) {
    guard let id = openTransport else { return }
    let ref = nextRef()
    counters.heartbeatsSent += 1
    heartbeat.sent(ref: ref, at: turn.now, within: deadline)
    turn.effects.append(
      .send(id, PhoenixFrame(ref: ref, topic: PhoenixFrame.Name.phoenix, event: PhoenixFrame.Name.heartbeat, [:])))
  }

  /// The host or its network changed: find out quickly whether the peer is still there.
  mutating func probe(_ turn: inout Turn) {
    guard openTransport != nil else { return }
    if heartbeat.pendingRef == nil {
      // Hints may come in floods: one that comes soon after a heartbeat brings the next one forward.
      if let last = heartbeat.lastSent, turn.now < last + policy.heartbeat.probeSpacing {
        let next = last + policy.heartbeat.probeSpacing
        if timers.deadline(of: .heartbeat).map({ $0 > next }) ?? true { timers.arm(.heartbeat, at: next, &turn) }
        return
      }
      sendHeartbeat(within: policy.heartbeat.probeDeadline, &turn)
    } else {
      heartbeat.hurry(at: turn.now, within: policy.heartbeat.probeDeadline)
    }
  }

  mutating func tidyAnswerDeadline(_ turn: inout Turn) {
    let deadline =
      openTransport == nil
      ? nil
      : heartbeat.deadline(joins: unansweredJoins(turn), policy.heartbeat, policy.join)
    guard let deadline else { return timers.cancel(.answer, &turn) }
    // Looked at again when a join that was given up stops counting, because no event tells of that.
    let look = min(deadline, serverQueue.nextEnd(after: turn.now) ?? deadline)
    // The end of a join can put the deadline into the past; a timer that is due already stays.
    if let armed = timers.deadline(of: .answer), armed == look || max(armed, look) <= turn.now { return }
    timers.arm(.answer, at: max(look, turn.now), &turn)
  }

  mutating func answerOverdue(since deadline: UInt64, _ turn: inout Turn) {
    // A timer that fires late tells that this process slept; the answer may lie unread in the socket.
    if turn.now >= deadline + policy.heartbeat.latenessOfSleep {
      heartbeat.grantGrace(at: turn.now, within: policy.heartbeat.probeDeadline)
      return
    }
    let due = heartbeat.deadline(joins: unansweredJoins(turn), policy.heartbeat, policy.join)
    guard let due, due <= turn.now else { return }
    counters.heartbeatsMissed += 1
    turn.note(.heartbeatMissed)
    drop(FailureReport(.transient, "the server stopped answering"), &turn)
  }
}
