/// Which timers are armed. At most one of each kind; arming replaces.
struct TimerBook: Sendable {
  private(set) var armed: [TimerToken.Kind: (number: UInt64, deadline: UInt64)] = [:]
  private var lastNumber: UInt64 = 0

  mutating func arm(_ kind: TimerToken.Kind, at deadline: UInt64, _ turn: inout Turn) {
    cancel(kind, &turn)
    lastNumber += 1
    armed[kind] = (lastNumber, deadline)
    turn.effects.append(.schedule(TimerToken(kind: kind, number: lastNumber), at: deadline))
  }

  mutating func cancel(_ kind: TimerToken.Kind, _ turn: inout Turn) {
    guard let entry = armed.removeValue(forKey: kind) else { return }
    turn.effects.append(.cancel(TimerToken(kind: kind, number: entry.number)))
  }

  mutating func cancelAll(except kept: Set<TimerToken.Kind> = [], _ turn: inout Turn) {
    let ended = armed.filter { !kept.contains($0.key) }.sorted { $0.value.number < $1.value.number }
    for (kind, _) in ended { cancel(kind, &turn) }
  }

  func isArmed(_ kind: TimerToken.Kind) -> Bool { armed[kind] != nil }

  func deadline(of kind: TimerToken.Kind) -> UInt64? { armed[kind]?.deadline }

  /// Takes a firing; nil when it is stale, else the deadline it was armed for.
  mutating func consume(_ token: TimerToken) -> UInt64? {
    guard let entry = armed[token.kind], entry.number == token.number else { return nil }
    armed[token.kind] = nil
    return entry.deadline
  }
}

/// One event being handled: the time it happens at, chance, and the effects so far.
struct Turn {
  let now: UInt64
  let jitter: () -> Double
  var receivedAt: UInt64 = 0
  var effects: [ConnectionEffect] = []

  init(now: UInt64, jitter: @escaping () -> Double) {
    self.now = now
    self.jitter = jitter
  }

  private func chance() -> Double { min(max(jitter(), 0), 1) }

  /// From [d/2, d].
  func upperHalf(_ duration: UInt64) -> UInt64 {
    duration / 2 + UInt64(Double(duration - duration / 2) * chance())
  }

  /// From [0, d].
  func upTo(_ duration: UInt64) -> UInt64 {
    UInt64(Double(duration) * chance())
  }

  /// From [d (1 - share), d (1 + share)].
  func around(_ duration: UInt64, share: Double) -> UInt64 {
    UInt64(Double(duration) * (1 + share * (2 * chance() - 1)))
  }

  mutating func note(_ note: ConnectionNote) { effects.append(.note(note)) }
}
