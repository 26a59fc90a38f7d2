import Foundation

/// Dates as ISO 8601 texts, as PostgreSQL spells `timestamptz`, `timestamp` and `date` in JSON. One without an offset is
/// taken for UTC.
enum TimestampText {
  /// Microseconds since 1970, PostgreSQL's own resolution; nil for a text of another form, and for one with more digits.
  static func microseconds(_ text: String) -> Int64? {
    var rest = text.utf8[...]
    guard let year = number(&rest, 4), skip(&rest, "-"), let month = number(&rest, 2), skip(&rest, "-"),
      let day = number(&rest, 2), (1...12).contains(month), (1...daysIn(month, year)).contains(day)
    else { return nil }
    let days = daysSince1970(year, month, day)
    if rest.isEmpty { return days * 86_400_000_000 }
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
    return (((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1_000_000 + fraction
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
    let day = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
    let (year, month, dayOfMonth) = civil(day)
    guard (1...9999).contains(year) else { return nil }
    let time = seconds - day * 86_400
    let digits = fraction % 1000 == 0 ? padded(fraction / 1000, 3) : padded(fraction, 6)
    return padded(year, 4) + "-" + padded(month, 2) + "-" + padded(dayOfMonth, 2) + "T" + padded(time / 3600, 2) + ":"
      + padded(time / 60 % 60, 2) + ":" + padded(time % 60, 2) + "." + digits + "Z"
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

  // MARK: The calendar

  private static func daysIn(_ month: Int64, _ year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Years begin in March here, so that the leap day is the last; eras have 400 years or 146,097 days, and 719,468 days lie
  /// between 0000-03-01 and 1970-01-01.
  private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
  }

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
