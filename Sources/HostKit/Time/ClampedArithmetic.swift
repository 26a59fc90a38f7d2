/// Arithmetic that stops at the ends of a type, for numbers that a peer or a file may set to anything.
extension FixedWidthInteger {
  /// `self + other`, or the end of the type that it went beyond.
  public func addingClamped(_ other: Self) -> Self {
    let (value, overflow) = addingReportingOverflow(other)
    guard overflow else { return value }
    return other < 0 ? .min : .max
  }

  /// `self - other`, or the end of the type that it went beyond.
  public func subtractingClamped(_ other: Self) -> Self {
    let (value, overflow) = subtractingReportingOverflow(other)
    guard overflow else { return value }
    return other < 0 ? .max : .min
  }

  /// `self * other`, or the end of the type that it went beyond.
  public func multipliedClamped(by other: Self) -> Self {
    let (value, overflow) = multipliedReportingOverflow(by: other)
    guard overflow else { return value }
    return (self < 0) == (other < 0) ? .max : .min
  }
}
