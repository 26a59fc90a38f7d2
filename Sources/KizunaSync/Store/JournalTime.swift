/// When a row of the capture journal was written.
enum JournalTime {
  /// The Julian day of 1970-01-01 00:00 UTC.
  private static let epoch = 2_440_587.5

  /// Milliseconds since 1970. Triggers leave a Julian day, which costs them one function call; it is exact to a tenth of
  /// a millisecond.
  static func milliseconds(_ cell: SQLiteValue) -> Int64 {
    switch cell {
    case .integer(let milliseconds): milliseconds
    case .real(let day): Int64(((day - epoch) * 86_400_000).rounded())
    default: 0
    }
  }
}
