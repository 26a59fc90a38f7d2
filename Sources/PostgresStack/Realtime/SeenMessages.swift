#if Postgres
  /// Which messages were delivered in the last minutes, so that those of a gap are found and none is delivered twice.
  struct SeenMessages {
    /// Nanoseconds for which an id is remembered.
    private let margin: UInt64
    private var times: [String: UInt64] = [:]
    /// Found in the table, not by a notification: the notification may still come.
    private var early: Set<String> = []
    /// In the order of `times`; oldest first.
    private var order: [(id: String, at: UInt64)] = []
    private var start = 0
    /// When the last notification or reading was.
    private(set) var lastHealthyAt: UInt64?

    /// Enough for any development server; beyond it a gap may deliver a ring again, which costs an empty pull.
    private static let limit = 100_000

    init(margin: UInt64) {
      self.margin = margin
    }

    /// Those of the notified messages that have not been delivered.
    mutating func fresh(_ ids: [String], at now: UInt64) -> [String] {
      defer { forget(at: now) }
      lastHealthyAt = now
      return ids.filter { id in
        let isEarly = early.remove(id) != nil
        remember(id, at: now)
        return !isEarly
      }
    }

    /// Those of the messages in the table that have not been delivered.
    mutating func catchUp(_ ids: [String], at now: UInt64) -> Set<String> {
      // Before this nobody listened, so that these are no part of a gap, and those whose notification is on its way are
      // delivered by it.
      let isFirst = lastHealthyAt == nil
      defer { forget(at: now) }
      lastHealthyAt = now
      var missed: Set<String> = []
      for id in ids where times[id] == nil {
        missed.insert(id)
        if !isFirst { early.insert(id) }
        remember(id, at: now)
      }
      return missed
    }

    /// They were not delivered after all.
    mutating func forget(_ ids: [String]) {
      for id in ids { times[id] = nil }
      order.removeAll { ids.contains($0.id) }
      start = min(start, order.count)
    }

    private mutating func remember(_ id: String, at now: UInt64) {
      guard times.updateValue(now, forKey: id) == nil else { return }
      order.append((id, now))
    }

    private mutating func forget(at now: UInt64) {
      while start < order.count, order.count - start > Self.limit || order[start].at + 2 * margin < now {
        times[order[start].id] = nil
        early.remove(order[start].id)
        start += 1
      }
      guard start > order.count / 2 else { return }
      order.removeFirst(start)
      start = 0
    }
  }
#endif
