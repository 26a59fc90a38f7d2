import Glibc

/// Calendar times as text, without Foundation.
public enum UTCTimestamp {
  /// `2026-01-31T23:59:59.123Z` from milliseconds since 1970.
  public static func text(milliseconds: Int64) -> String {
    var seconds = time_t(milliseconds / 1000)
    var rest = milliseconds % 1000
    if rest < 0 {
      rest += 1000
      seconds -= 1
    }
    var parts = tm()
    gmtime_r(&seconds, &parts)
    return [
      padded(Int(parts.tm_year) + 1900, 4), "-", padded(Int(parts.tm_mon) + 1, 2), "-", padded(Int(parts.tm_mday), 2),
      "T", padded(Int(parts.tm_hour), 2), ":", padded(Int(parts.tm_min), 2), ":", padded(Int(parts.tm_sec), 2), ".",
      padded(Int(rest), 3), "Z",
    ].joined()
  }

  private static func padded(_ value: Int, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
