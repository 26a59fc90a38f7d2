import HostKit

/// How long a token lives. The issuer's and this machine's calendars may differ, so a token that was just issued is given
/// the length of its life, counted from its receipt; only for one of unknown age the calendar must do.
extension UnverifiedToken {
  /// `exp − iat` in nanoseconds; nil when either is missing or the difference makes no sense.
  var lifetime: UInt64? {
    guard let expiresAt, let issuedAt, expiresAt > issuedAt else { return nil }
    let seconds = expiresAt.subtractingClamped(issuedAt)
    return seconds < 1 << 32 ? UInt64(seconds) * 1_000_000_000 : nil
  }

  /// Nanoseconds left at `wall` (milliseconds since 1970), never more than the whole life; nil for a token without end.
  func remaining(at wall: Int64) -> UInt64? {
    // Ends after the year 2240 are meant as none, and the nanoseconds until then fit.
    guard let expiresAt, expiresAt < 1 << 33 else { return nil }
    let left = UInt64(clamping: (max(expiresAt, 0) * 1000).subtractingClamped(wall)).multipliedClamped(by: 1_000_000)
    return min(left, lifetime ?? .max)
  }

  /// The same for a token of an earlier run; nil when this machine's calendar must be wrong, because it stands before the
  /// token was issued.
  func remainingIfPlausible(at wall: Int64) -> UInt64? {
    guard let issuedAt, issuedAt < 1 << 33, wall >= issuedAt.multipliedClamped(by: 1000).subtractingClamped(60_000)
    else { return nil }
    return remaining(at: wall)
  }
}
