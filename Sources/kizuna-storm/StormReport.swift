import HostKit

/// All outages of one run, and what is said about them.
struct StormReport: Sendable {
  /// The most that is allowed of `peakToMean`.
  static let limit = 1.5
  /// Seconds; these must keep to the limit.
  static let limited: [Double] = [120, 600, 3_600]
  /// Seconds; too short for the delays to have spread the gateways, shown for comparison.
  static let short: [Double] = [5, 15, 30, 60]

  let storm: Storm
  let results: [StormResult]

  static func isLimited(_ result: StormResult) -> Bool { limited.contains(result.outage.duration.inSeconds) }

  /// The worst of those that are limited.
  var peakToMean: Double { results.filter(Self.isLimited).map(\.peakToMean).max() ?? 0 }

  var isWithinLimit: Bool { peakToMean <= Self.limit }

  var table: String {
    let rows = results.map { result in
      [
        Self.name(result.outage), "\(result.peak)", Self.number(result.peakToMean),
        Self.isLimited(result) ? Self.number(Self.limit) : "–", Self.number(result.lastBack.inSeconds) + " s",
        Self.number(result.attemptsInVainEach),
      ]
    }
    let mean = Self.number(results.first?.mean ?? 0)
    return """
      \(storm.gateways) gateways, seed \(storm.seed); evenly spread over \
      \(Int(storm.policy.reconnect.cap.inSeconds)) s they would be \(mean) in 3 s

      \(TextTable.table(["outage", "most in 3 s", "÷ even", "limit", "all back after", "attempts in vain"], rows))
      """
  }

  var json: JSONValue {
    [
      "peak_to_mean": Self.decimal(peakToMean), "limit": Self.decimal(Self.limit),
      "within_limit": .bool(isWithinLimit), "gateways": .int(storm.gateways),
      "seed": .int(Int64(clamping: storm.seed)),
      "outages": .array(
        results.map { result in
          [
            "seconds": Self.decimal(result.outage.duration.inSeconds), "is_limited": .bool(Self.isLimited(result)),
            "peak_to_mean": Self.decimal(result.peakToMean), "peak": .int(result.peak),
            "last_back_seconds": Self.decimal(result.lastBack.inSeconds),
            "attempts_in_vain_per_gateway": Self.decimal(result.attemptsInVainEach),
          ]
        }),
    ]
  }

  static func name(_ outage: Outage) -> String {
    let seconds = Int(outage.duration.inSeconds)
    if seconds % 3_600 == 0 { return "\(seconds / 3_600) h" }
    return seconds % 60 == 0 ? "\(seconds / 60) min" : "\(seconds) s"
  }

  static func number(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }

  private static func decimal(_ value: Double) -> JSONValue {
    JSONNumber((value * 1_000).rounded() / 1_000).map(JSONValue.number) ?? .null
  }
}
