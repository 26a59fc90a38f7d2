/// Whether the peer is still there.
struct Heartbeat: Sendable {
  /// Reference of the newest unanswered heartbeat; an answer to an older one does not count.
  private(set) var pendingRef: String?
  private var pendingSentAt: UInt64 = 0
  /// When the newest one was sent on this connection.
  private(set) var lastSent: UInt64?
  /// Of the newest one that was answered, on any connection.
  private(set) var lastRoundTrip: UInt64?
  /// When the oldest unanswered one was sent, and when it must be answered if the server is not busy with joins.
  private(set) var oldest: (sentAt: UInt64, answerBy: UInt64)?
  /// When anything was received last.
  private(set) var lastReceived: UInt64 = 0

  mutating func opened(at now: UInt64) {
    let roundTrip = lastRoundTrip
    self = Heartbeat()
    lastRoundTrip = roundTrip
    lastReceived = now
  }

  mutating func received(at now: UInt64) { lastReceived = now }

  mutating func sent(ref: String, at now: UInt64, within deadline: UInt64) {
    pendingRef = ref
    pendingSentAt = now
    lastSent = now
    if oldest == nil { oldest = (now, now + deadline) }
  }

  /// The server has finished a join that was sent at `joinSentAt`. It answers in order, so a heartbeat sent after that
  /// join has waited for it and gets its whole deadline from here.
  mutating func joinDone(sentAt joinSentAt: UInt64, at now: UInt64, _ deadline: UInt64) {
    guard let oldest, joinSentAt <= oldest.sentAt else { return }
    self.oldest?.answerBy = max(oldest.answerBy, now + deadline)
  }

  /// Shortens the patience with the one that is out.
  mutating func hurry(at now: UInt64, within deadline: UInt64) {
    guard let oldest else { return }
    self.oldest?.answerBy = min(oldest.answerBy, now + deadline)
  }

  /// A deadline that was noticed late: what came in meanwhile may still be unread.
  mutating func grantGrace(at now: UInt64, within deadline: UInt64) {
    oldest?.answerBy = now + deadline
  }

  /// - Returns: whether this was the answer to the newest one.
  mutating func answered(ref: String?, at now: UInt64) -> Bool {
    guard let pendingRef, ref == pendingRef else { return false }
    lastRoundTrip = now - min(now, pendingSentAt)
    self.pendingRef = nil
    oldest = nil
    return true
  }

  /// When the connection counts as dead; nil while nothing is unanswered.
  ///
  /// While joins are out, silence is counted from the last byte, or from the join that the server is at, if the heartbeat
  /// waits behind it.
  /// - Parameter joins: when the joins that the server has not answered were sent.
  func deadline(joins: [UInt64], _ heartbeat: HeartbeatPolicy, _ join: JoinPolicy) -> UInt64? {
    guard let oldest else { return nil }
    guard !joins.isEmpty else { return oldest.answerBy }
    let ahead = joins.filter { $0 <= oldest.sentAt }.min() ?? 0
    return max(oldest.answerBy, max(lastReceived, ahead) + join.deadline + heartbeat.deadline)
  }
}
