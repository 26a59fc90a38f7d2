/// Calendar times as text, without Foundation.
public enum UTCTimestamp {
  /// `2026-01-31T23:59:59.123Z` from milliseconds since 1970.
  public static func text(milliseconds: Int64) -> String {
    let (seconds, rest) = milliseconds.flooredQuotientAndRemainder(dividingBy: 1000)
    return "\(UTCTime(secondsSince1970: seconds).text).\(UTCTime.padded(rest, 3))Z"
  }
}

extension Int64 {
  /// Division whose remainder is never negative.
  /// - Parameter divisor: greater than 0.
  public func flooredQuotientAndRemainder(dividingBy divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
