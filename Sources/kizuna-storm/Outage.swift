import HostKit

/// When the server is away. All times are nanoseconds of the simulation.
struct Outage: Sendable, Hashable {
  /// Long enough before it for every gateway to be connected and stable.
  let start: UInt64 = .seconds(120)
  let duration: UInt64

  init(seconds: Double) { duration = .seconds(seconds) }

  var end: UInt64 { start + duration }

  func covers(_ time: UInt64) -> Bool { time >= start && time < end }
}
