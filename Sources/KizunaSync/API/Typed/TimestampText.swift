import Foundation
import HostKit

/// Dates as ISO 8601 texts, as PostgreSQL spells `timestamptz`, `timestamp` and `date` in JSON. One without an offset is
/// taken for UTC.
enum TimestampText {
  /// Microseconds since 1970, PostgreSQL's own resolution; nil for a text of another form, and for one with more digits.
  static func microseconds(_ text: String) -> Int64? {
    var rest = text.utf8[...]
    guard let year = number(&rest, 4), skip(&rest, "-"), let month = number(&rest, 2), skip(&rest, "-"),
      let day = number(&rest, 2), let midnight = UTCTime(year: year, month: month, day: day)?.secondsSince1970
    else { return nil }
    if rest.isEmpty { return midnight * 1_000_000 }
    guard skip(&rest, "T") || skip(&rest, "t") || skip(&rest, " "), let hour = number(&rest, 2), skip(&rest, ":"),
      let minute = number(&rest, 2), hour < 24, minute < 60
    else { return nil }
    var second: Int64 = 0
    var fraction: Int64 = 0
    if skip(&rest, ":") {
      guard let value = number(&rest, 2), value < 60 else { return nil }
      second = value
      if skip(&rest, ".") {
        guard let value = microseconds(&rest) else { return nil }
        fraction = value
      }
    }
    guard let offset = offset(&rest), rest.isEmpty else { return nil }
    return (midnight + (hour * 60 + minute - offset) * 60 + second) * 1_000_000 + fraction
  }

  static func date(_ text: String) -> Date? {
    microseconds(text).map { microseconds in
      // In two steps, because a double holds no microseconds since 1970 beside the seconds since 2001.
      let seconds = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
      return Date(
        timeIntervalSinceReferenceDate: Double(seconds.quotient - 978_307_200) + Double(seconds.remainder) / 1e6)
    }
  }

  /// To the microsecond; nil for a date outside the years 1 to 9999.
  static func text(_ date: Date) -> String? {
    let interval = date.timeIntervalSinceReferenceDate
    guard interval.isFinite, abs(interval) < 1e12 else { return nil }
    let whole = interval.rounded(.down)
    var seconds = Int64(whole) + 978_307_200
    var fraction = Int64(((interval - whole) * 1e6).rounded())
    if fraction == 1_000_000 {
      seconds += 1
      fraction = 0
    }
    let time = UTCTime(secondsSince1970: seconds)
    guard (1...9999).contains(time.year), time.secondsSince1970 == seconds else { return nil }
    return time.text + "." + (fraction % 1000 == 0 ? UTCTime.padded(fraction / 1000, 3) : UTCTime.padded(fraction, 6))
      + "Z"
  }

  // MARK: Reading

  private typealias Rest = Substring.UTF8View

  private static func skip(_ rest: inout Rest, _ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  private static func number(_ rest: inout Rest, _ count: Int) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<count {
      guard let digit = rest.popFirst(), (0x30...0x39).contains(digit) else { return nil }
      value = value * 10 + Int64(digit - 0x30)
    }
    return value
  }

  private static func microseconds(_ rest: inout Rest) -> Int64? {
    var value: Int64 = 0
    var count = 0
    while let digit = rest.first, (0x30...0x39).contains(digit) {
      rest.removeFirst()
      count += 1
      if count <= 6 { value = value * 10 + Int64(digit - 0x30) } else if digit != 0x30 { return nil }
    }
    guard count > 0 else { return nil }
    for _ in count..<max(6, count) { value *= 10 }
    return value
  }

  /// Minutes east of UTC.
  private static func offset(_ rest: inout Rest) -> Int64? {
    if rest.isEmpty || skip(&rest, "Z") || skip(&rest, "z") { return 0 }
    let sign: Int64 = rest.first == UInt8(ascii: "-") ? -1 : 1
    guard skip(&rest, "+") || skip(&rest, "-"), let hours = number(&rest, 2), hours < 24 else { return nil }
    if rest.isEmpty { return sign * hours * 60 }
    _ = skip(&rest, ":")
    guard let minutes = number(&rest, 2), minutes < 60 else { return nil }
    return sign * (hours * 60 + minutes)
  }
}
