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
    return "\(Timestamp.text(milliseconds: milliseconds))|\(counter)|\(node)"
  }
}

/// Instants as `2026-01-01T00:00:03.000Z`.
enum Timestamp {
  static func text(milliseconds: Int64) -> String {
    let days = Int64((Double(milliseconds) / 86_400_000).rounded(.down))
    let rest = milliseconds - days * 86_400_000
    let (year, month, day) = civil(days)
    return "\(pad(year, 4))-\(pad(month, 2))-\(pad(day, 2))T\(pad(rest / 3_600_000, 2)):"
      + "\(pad(rest / 60_000 % 60, 2)):\(pad(rest / 1000 % 60, 2)).\(pad(rest % 1000, 3))Z"
  }

  /// The Gregorian date of a day counted from 1970-01-01: years begin in March, so that the leap day comes last.
  private static func civil(_ days: Int64) -> (Int64, Int64, Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  private static func pad(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
