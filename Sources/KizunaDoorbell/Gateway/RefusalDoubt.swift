import HostKit

/// Whether to doubt that Realtime still refuses the credentials: pulls go on with the same token, and one that succeeds
/// shows that the token is good. A connection waits for another one by itself, which may be an hour away.
struct RefusalDoubt {
  /// A refusal is believed for so long, nanoseconds.
  static let patience: UInt64 = .seconds(300)

  private var waitingSince: UInt64?

  mutating func connectionChanged(isWaiting: Bool, at now: UInt64) {
    if !isWaiting { waitingSince = nil } else if waitingSince == nil { waitingSince = now }
  }

  /// A pull succeeded.
  /// - Returns: whether the connection should try again.
  mutating func pulled(at now: UInt64) -> Bool {
    guard let since = waitingSince, now >= since + Self.patience else { return false }
    waitingSince = now
    return true
  }
}
