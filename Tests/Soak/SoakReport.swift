import HostKit

/// How a soak went.
struct SoakReport: Sendable {
  /// What a gateway's log and the kernel tell about it.
  struct Host: Sendable {
    var name: String
    var rings = 0
    var syncs = 0
    var failedSyncs = 0
    var connects = 0
    var heartbeatsMissed = 0
    /// Lost or refused connections by class.
    var lost: [String: Int] = [:]
    var descriptorsAtStart = 0
    var descriptorsAtEnd = 0
    var residentKiBAtStart = 0
    var residentKiBAtEnd = 0

    /// Counts the lines of a log in JSON.
    mutating func count(_ lines: [String]) {
      for line in lines {
        guard let value = try? JSONValue(parsing: line), let event = value["event"]?.stringValue else { continue }
        switch event {
        case "gateway.rung": rings += 1
        case "gateway.synced": syncs += 1
        case "gateway.sync_failed": failedSyncs += 1
        case "realtime.open": connects += 1
        case "realtime.heartbeat_missed": heartbeatsMissed += 1
        case "realtime.lost": lost[value["class"]?.stringValue ?? "unknown", default: 0] += 1
        default: break
        }
      }
    }

    var json: JSONValue {
      [
        "name": .string(name), "rings": .int(rings), "syncs": .int(syncs), "failed_syncs": .int(failedSyncs),
        "connects": .int(connects), "heartbeats_missed": .int(heartbeatsMissed),
        "lost_by_class": .object(lost.mapValues { .int($0) }),
        "descriptors": [.int(descriptorsAtStart), .int(descriptorsAtEnd)],
        "resident_kib": [.int(residentKiBAtStart), .int(residentKiBAtEnd)],
      ]
    }

    var text: String {
      let classes = lost.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
      return """
        host \(name): \(rings) rings, \(syncs) syncs (\(failedSyncs) failed), \(connects) connects, \
        \(heartbeatsMissed) heartbeats missed; lost: \(classes.isEmpty ? "none" : classes)
          descriptors \(descriptorsAtStart) → \(descriptorsAtEnd), \
        resident \(residentKiBAtStart) → \(residentKiBAtEnd) KiB
        """
    }
  }

  var seed: UInt64
  var seconds = 0
  var writes = 0
  var faults: [String: Int] = [:]
  var repeatedJoins = 0
  /// From the end of a fault until what was written during it was everywhere, milliseconds, sorted.
  var convergence: [Double] = []
  /// The fault after which it took longest.
  var slowest = ""
  /// From the end of a fault until every host had its topic joined, milliseconds, sorted.
  var rejoining: [Double] = []
  var hosts: [Host] = []
  var problems: [String] = []

  private static func percentile(_ values: [Double], _ share: Double) -> Double {
    values.isEmpty ? 0 : values[min(values.count - 1, Int(Double(values.count) * share))]
  }

  private static func summary(_ values: [Double]) -> JSONValue {
    [
      "p50_ms": .int(Int(percentile(values, 0.5))), "p95_ms": .int(Int(percentile(values, 0.95))),
      "max_ms": .int(Int(values.last ?? 0)),
    ]
  }

  var json: JSONValue {
    [
      "ok": .bool(problems.isEmpty), "seed": .int(Int64(seed)), "seconds": .int(seconds), "writes": .int(writes),
      "faults": .object(faults.mapValues { .int($0) }), "repeated_joins": .int(repeatedJoins),
      "convergence": Self.summary(convergence), "slowest": .string(slowest), "rejoining": Self.summary(rejoining),
      "hosts": .array(hosts.map(\.json)), "problems": .array(problems.map { .string($0) }),
    ]
  }

  var text: String {
    func line(_ name: String, _ values: [Double]) -> String {
      "\(name): p50 \(Int(Self.percentile(values, 0.5))) ms, p95 \(Int(Self.percentile(values, 0.95))) ms,"
        + " max \(Int(values.last ?? 0)) ms"
    }
    let kinds = faults.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) \($0.key)" }
    var lines = [
      "soak of \(seconds) s, seed \(seed): \(faults.values.reduce(0, +)) faults, \(writes) writes",
      "faults: \(kinds.joined(separator: ", "))",
      line("everything everywhere after a fault", convergence) + (slowest.isEmpty ? "" : " (\(slowest))"),
      line("topics joined after a fault", rejoining), "topics joined twice on one socket: \(repeatedJoins)",
    ]
    lines += hosts.map(\.text)
    lines += problems.isEmpty ? ["no problems"] : problems.map { "problem: \($0)" }
    return lines.joined(separator: "\n")
  }
}
