import HostKit

/// What a number of durations looks like: the usual percentiles, in nanoseconds.
public struct LatencySummary: Sendable, Hashable {
  public let count: Int
  public let p50: UInt64
  public let p90: UInt64
  public let p99: UInt64
  public let maximum: UInt64

  /// Percentiles by nearest rank: each is one of the samples. Nil without samples.
  public init?(_ samples: [UInt64]) {
    guard let last = samples.max() else { return nil }
    let sorted = samples.sorted()
    func rank(_ percent: Int) -> UInt64 {
      sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
    }
    count = sorted.count
    p50 = rank(50)
    p90 = rank(90)
    p99 = rank(99)
    maximum = last
  }

  /// `{"p50":…,"p90":…,"p99":…,"max":…}` in milliseconds, to the microsecond.
  public var json: JSONValue {
    [
      "p50": Self.milliseconds(p50), "p90": Self.milliseconds(p90), "p99": Self.milliseconds(p99),
      "max": Self.milliseconds(maximum),
    ]
  }

  private static func milliseconds(_ value: UInt64) -> JSONValue {
    JSONNumber((value.inMilliseconds * 1000).rounded() / 1000).map(JSONValue.number) ?? .null
  }
}
