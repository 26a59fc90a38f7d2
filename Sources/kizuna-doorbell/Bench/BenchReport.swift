import HostKit
import KizunaDoorbell

/// The samples of a bench and what is printed of them. Durations in nanoseconds.
struct BenchReport: Sendable {
  /// The title of the first stage, which depends on what is known about the server.
  var firstStage: String
  var stages: [RingStage: [UInt64]] = [:]
  var totals: [UInt64] = []
  /// From the `COMMIT` of an SQL session to the server that rings; empty where there is no such session.
  var trigger: [UInt64] = []
  /// The floor's parts, sample by sample beside the totals.
  var webSocket: [UInt64] = []
  var request: [UInt64] = []
  var transaction: [UInt64] = []
  /// Rings that were not answered in time or could not be followed.
  var lost = 0

  private var floors: [UInt64] {
    webSocket.indices.map { webSocket[$0] + request[$0] + transaction[$0] }
  }

  /// The whole way, from the `COMMIT` on.
  private var fromCommit: [UInt64] { zip(trigger, totals).map { $0 + $1 } }

  /// Total ÷ floor, each at its median.
  var ratio: Double? {
    guard let total = LatencySummary(totals), let floor = LatencySummary(floors), floor.p50 > 0 else { return nil }
    return (Double(total.p50) / Double(floor.p50) * 1000).rounded() / 1000
  }

  var json: JSONValue {
    func summary(_ samples: [UInt64]) -> JSONValue { LatencySummary(samples)?.json ?? nil }
    var latency: [String: JSONValue] = ["total": summary(totals)]
    for stage in RingStage.allCases { latency[stage.rawValue] = summary(stages[stage] ?? []) }
    if !trigger.isEmpty {
      latency["trigger"] = summary(trigger)
      latency["from_commit"] = summary(fromCommit)
    }
    return [
      "ok": .bool(!totals.isEmpty), "rings": .int(totals.count), "lost": .int(lost), "latency_ms": .object(latency),
      "floor_ms": [
        "websocket": summary(webSocket), "request": summary(request), "transaction": summary(transaction),
        "total": summary(floors),
      ],
      "ratio": ratio.flatMap { JSONNumber($0) }.map(JSONValue.number) ?? nil,
    ]
  }

  var text: String {
    func row(_ title: String, _ samples: [UInt64]) -> [String] {
      guard let summary = LatencySummary(samples) else { return [title, "-", "-", "-", "-"] }
      return [title] + [summary.p50, summary.p90, summary.p99, summary.maximum].map(Self.milliseconds)
    }
    let stageRows = RingStage.allCases.map { row($0 == .broadcast ? firstStage : $0.title, stages[$0] ?? []) }
    let sqlRows = trigger.isEmpty ? [] : [row("trigger → socket: COMMIT sent → notification received", trigger)]
    let wholeRows = trigger.isEmpty ? [] : [row("COMMIT sent → SQLite committed", fromCommit)]
    let rows =
      sqlRows + stageRows + [row("total", totals)] + wholeRows + [
        row("floor: WebSocket, half a round trip", webSocket),
        row("floor: the same request, keep-alive", request), row("floor: the same row, one transaction", transaction),
        row("floor: sum", floors),
      ]
    let table = TextTable.table(
      ["milliseconds, \(Counted.of(totals.count, "ring"))", "p50", "p90", "p99", "max"], rows)
    let lostText =
      lost > 0
      ? "\n\(Counted.of(lost, "ring")) \(lost == 1 ? "was" : "were") not answered in time or could not be followed" : ""
    return table + "\ntotal ÷ floor at p50: \(ratio.map { "\($0)" } ?? "-")" + lostText
  }

  private static func milliseconds(_ value: UInt64) -> String {
    let micro = (value + 500) / 1000
    let fraction = String(micro % 1000)
    return "\(micro / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}
