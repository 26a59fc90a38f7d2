import HostKit

/// The hybrid logical clock that stamps writes of `hlc` tables (Kizuna wire contract §3.2, §13.4).
struct HybridClock: Equatable {
  private(set) var milliseconds: Int64
  private(set) var counter: Int64
  /// Names this installation; minted once and kept.
  let node: String

  /// A clock this far ahead of the calendar was set by mistake and is not followed.
  static let maximumLead: Int64 = 3_600_000

  /// - Parameter state: what `state` gave before; anything else starts afresh with a new node.
  init(state: String?, newNode: () -> String) {
    let parts = (state ?? "").split(separator: "|", maxSplits: 2).map(String.init)
    if parts.count == 3, let milliseconds = Int64(parts[0]), let counter = Int64(parts[1]) {
      (self.milliseconds, self.counter, node) = (milliseconds, counter, parts[2])
    } else {
      (milliseconds, counter, node) = (0, -1, newNode())
    }
  }

  var state: String { "\(milliseconds)|\(counter)|\(node)" }

  /// The next stamp for a write made at `moment`.
  /// - Parameter now: the calendar, to recognise a clock that ran ahead.
  mutating func mint(at moment: Int64, now: Int64) -> String {
    if milliseconds > now + Self.maximumLead { (milliseconds, counter) = (0, -1) }
    // A write noted under a clock that has been put back since.
    let moment = min(moment, now)
    if moment > milliseconds {
      milliseconds = moment
      counter = 0
    } else {
      counter += 1
    }
    return "\(UTCTimestamp.text(milliseconds: milliseconds))|\(counter)|\(node)"
  }
}
