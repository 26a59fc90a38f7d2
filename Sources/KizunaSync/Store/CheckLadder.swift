import HostKit

/// When to look for a foreign commit after a sign of one.
///
/// The write-ahead log changes before the commit becomes visible (by an `fsync`, for a writer that asked for durability),
/// so one look is not enough; and a look that comes too early says nothing. After the last sign it looks at once, and
/// again after growing pauses, then not at all.
struct CheckLadder: Sendable, Equatable {
  /// Nanoseconds after a sign.
  static let steps: [UInt64] = [0, 1, 4, 16, 64, 256, 1000].map { .milliseconds($0) }
  /// A busy writer gives a sign per page; looking at each would cost more than it finds.
  static let minimumPause: UInt64 = .milliseconds(1)

  private var signAt: UInt64 = 0
  private var nextStep = Self.steps.count
  private var lastLook: UInt64?

  /// Something changed: the ladder starts afresh.
  mutating func sign(at now: UInt64) {
    signAt = now
    nextStep = 0
  }

  /// When to look next; nil when there is nothing to expect.
  var due: UInt64? {
    guard nextStep < Self.steps.count else { return nil }
    let planned = signAt + Self.steps[nextStep]
    return max(planned, lastLook.map { $0 + Self.minimumPause } ?? planned)
  }

  /// Whether to look now. One look stands for all steps that lie in the past.
  mutating func look(at now: UInt64) -> Bool {
    guard let due, due <= now else { return false }
    while nextStep < Self.steps.count, signAt + Self.steps[nextStep] <= now { nextStep += 1 }
    lastLook = now
    return true
  }
}
