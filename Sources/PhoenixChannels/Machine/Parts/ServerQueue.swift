/// What the server is still working on although the machine no longer waits for it: joins that were given up, and
/// leaves. Joins in it keep the server from answering heartbeats.
struct ServerQueue: Sendable {
  struct Entry {
    /// Of the join.
    let joinRef: String
    /// Of the leave.
    var leaveRef: String?
    /// Set while the join itself is unanswered.
    var joinSentAt: UInt64?
    /// From then on it is not counted any more.
    let until: UInt64
  }
  private(set) var entries: [Entry] = []

  /// - Parameter maximum: entries to keep; a peer that answers nothing must not make this grow.
  mutating func leave(
    joinRef: String, leaveRef: String, joinSentAt: UInt64?, until: UInt64, remembering maximum: Int
  ) {
    if entries.count >= max(1, maximum) { entries.removeFirst() }
    entries.append(Entry(joinRef: joinRef, leaveRef: leaveRef, joinSentAt: joinSentAt, until: until))
  }

  /// When the joins were sent that are unanswered still.
  func joins(at now: UInt64) -> [UInt64] {
    entries.compactMap { $0.until > now ? $0.joinSentAt : nil }
  }

  /// When the next of them stops counting.
  func nextEnd(after now: UInt64) -> UInt64? {
    entries.filter { $0.until > now && $0.joinSentAt != nil }.map(\.until).min()
  }

  enum Answer {
    case notOurs
    case leave
    /// The late answer to a join that was sent then.
    case join(sentAt: UInt64)
  }

  mutating func reply(ref: String) -> Answer {
    if let index = entries.firstIndex(where: { $0.joinRef == ref && $0.joinSentAt != nil }) {
      let sentAt = entries[index].joinSentAt ?? 0
      entries[index].joinSentAt = nil
      return .join(sentAt: sentAt)
    }
    if let index = entries.firstIndex(where: { $0.leaveRef == ref }) {
      // The entry stays: the `phx_close` of the channel may still come.
      entries[index].leaveRef = nil
      entries[index].joinSentAt = nil
      return .leave
    }
    return .notOurs
  }

  /// - Returns: whether a channel that was left has closed.
  mutating func closed(joinRef: String) -> Bool {
    guard let index = entries.firstIndex(where: { $0.joinRef == joinRef }) else { return false }
    entries[index].joinSentAt = nil
    return true
  }
}
