import HTTPClient
import HostKit

/// Decides what to say of the host's clock, seen beside the server's. Nothing that is fetched or sent depends on it, but
/// the times that people see do, and tokens seem to expire at the wrong moment.
struct ClockWatch: Equatable {
  enum Change: Equatable {
    /// The clock is off by so many seconds, ahead when positive; it is time to say so.
    case off(seconds: Int64)
    case rightAgain
  }

  /// Milliseconds. The header tells whole seconds, and an answer is a while on its way.
  static let tolerance: Int64 = 5_000
  static let interval = UInt64.seconds(3_600)

  /// On the monotonic clock.
  private var reportedAt: UInt64?

  /// - Parameters:
  ///   - local: the host's calendar time, and `server` the server's, milliseconds since 1970.
  ///   - now: the monotonic clock.
  mutating func compare(local: Int64, server: Int64, now: UInt64) -> Change? {
    let offset = local - server
    guard abs(offset) > Self.tolerance else {
      if reportedAt == nil { return nil }
      reportedAt = nil
      return .rightAgain
    }
    if let reportedAt, now - reportedAt < Self.interval { return nil }
    reportedAt = now
    return .off(seconds: offset / 1_000)
  }
}

extension SyncEngine {
  func noteServerDate(of response: HTTPResponse) {
    guard let server = response.serverDate,
      let change = clockWatch.compare(local: clock.wallMilliseconds, server: server, now: clock.now)
    else { return }
    var offset: Int64?
    switch change {
    case .off(let seconds):
      offset = seconds
      log.warning("sync.clock_off", ["seconds": .int(Int(seconds))])
    case .rightAgain: log.info("sync.clock_right", [:])
    }
    // For those who look at the status; a database that is busy now is told the next time.
    try? replica().bareTransaction(sync: .normal, foreignKeys: false) {
      try replica().database.setMeta(.clockOffset, offset.map(SQLiteValue.integer) ?? .null)
    }
  }
}
