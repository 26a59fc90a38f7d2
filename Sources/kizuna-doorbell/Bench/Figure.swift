import HostKit

/// Numbers as a bench prints them.
enum Figure {
  /// How many times as fast as `other` something is that takes `own`: the median of the ratios of samples that were taken
  /// one after the other, so that what else the machine does weighs on both; to three digits.
  static func speed(of own: [UInt64], against other: [UInt64]) -> Double {
    let ratios = zip(own, other).map { Double($1) / Double(max(1, $0)) }.sorted()
    return ratios.isEmpty ? 0 : rounded(ratios[(ratios.count - 1) / 2])
  }

  static func median(_ samples: [UInt64]) -> UInt64? {
    samples.isEmpty ? nil : samples.sorted()[(samples.count - 1) / 2]
  }

  static func rounded(_ value: Double) -> Double { (value * 1000).rounded() / 1000 }

  static func json(_ value: Double) -> JSONValue { JSONNumber(rounded(value)).map(JSONValue.number) ?? .null }

  /// Milliseconds of the median.
  static func milliseconds(_ samples: [UInt64]) -> Double {
    rounded(Double(median(samples) ?? 0) / 1e6)
  }
}
