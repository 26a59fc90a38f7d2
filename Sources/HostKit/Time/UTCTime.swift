import Glibc

/// A second of the Gregorian calendar in UTC, by the C library.
public struct UTCTime: Sendable, Equatable {
  public var year: Int64
  /// 1 to 12.
  public var month: Int64
  /// 1 to 31.
  public var day: Int64
  public var hour: Int64
  public var minute: Int64
  public var second: Int64
  /// Days since Sunday.
  public private(set) var weekday = 0

  /// - Returns: nil for a date that is in no calendar, such as 30 February.
  public init?(year: Int64, month: Int64, day: Int64, hour: Int64 = 0, minute: Int64 = 0, second: Int64 = 0) {
    (self.year, self.month, self.day, self.hour, self.minute, self.second) = (year, month, day, hour, minute, second)
    guard (-9999...9999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
    // The C library moves 30 February into March.
    let written = UTCTime(secondsSince1970: secondsSince1970 - ((hour * 60 + minute) * 60 + second))
    guard written.month == month, written.day == day else { return nil }
    weekday = written.weekday
  }

  /// - Parameter secondsSince1970: clamped to the years -9999 to 9999.
  public init(secondsSince1970: Int64) {
    var seconds = time_t(min(max(secondsSince1970, -377_705_116_800), 253_402_300_799))
    var parts = tm()
    gmtime_r(&seconds, &parts)
    (year, month, day) = (Int64(parts.tm_year) + 1900, Int64(parts.tm_mon) + 1, Int64(parts.tm_mday))
    (hour, minute, second) = (Int64(parts.tm_hour), Int64(parts.tm_min), Int64(parts.tm_sec))
    weekday = Int(parts.tm_wday)
  }

  public var secondsSince1970: Int64 {
    var parts = tm()
    parts.tm_year = Int32(truncatingIfNeeded: year - 1900)
    parts.tm_mon = Int32(truncatingIfNeeded: month - 1)
    parts.tm_mday = Int32(truncatingIfNeeded: day)
    parts.tm_hour = Int32(truncatingIfNeeded: hour)
    parts.tm_min = Int32(truncatingIfNeeded: minute)
    parts.tm_sec = Int32(truncatingIfNeeded: second)
    return Int64(timegm(&parts))
  }

  /// `2026-01-31T23:59:59`.
  public var text: String {
    "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))T\(clock)"
  }

  /// `23:59:59`.
  public var clock: String { "\(Self.padded(hour, 2)):\(Self.padded(minute, 2)):\(Self.padded(second, 2))" }

  /// With zeros before it.
  public static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return digits.utf8.count >= width ? digits : String(repeating: "0", count: width - digits.utf8.count) + digits
  }
}
