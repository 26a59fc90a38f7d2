/// Growing delays.
enum Backoff {
  /// `base` multiplied by `factor` once for each failure before this one, at most `cap`.
  static func delay(base: UInt64, factor: Double, cap: UInt64, failuresBefore: Int) -> UInt64 {
    var delay = base
    var left = failuresBefore
    // The cap is reached after a few steps, however long the streak.
    while left > 0, delay < cap, factor > 1 {
      delay = UInt64(min(Double(delay) * factor, Double(cap)))
      left -= 1
    }
    return min(delay, cap)
  }
}
