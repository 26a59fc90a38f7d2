import HostKit

/// What `bench writes` prints. Durations in nanoseconds.
struct WritesReport: Sendable {
  struct Inserts: Sendable {
    var captured: [UInt64] = []
    var bare: [UInt64] = []
    /// The time without triggers ÷ the time with them.
    var ratio: Double { Figure.speed(of: captured, against: bare) }
  }

  struct Push: Sendable {
    var writes: Int
    var requests: Int
    /// From opening the file to the first request: the journal of what SQL wrote becomes the queue.
    var queueing: UInt64
    /// From the first request until the last verdicts were stored.
    var total: UInt64
    var roundTrips: UInt64
    var client: UInt64 { total - min(total, roundTrips) }
  }

  var rows: Int
  var singles: Int
  var inserts: [InsertWay: Inserts] = [:]
  var pushes: [Push] = []

  /// The lower one of a bulk insert by one statement, and single inserts.
  var ratio: Double {
    [InsertWay.statement, .single].map { inserts[$0]?.ratio ?? 0 }.min() ?? 0
  }

  /// The client's part of the time a push takes; the rest is spent waiting for the server.
  private var clientShare: Double {
    let total = Figure.median(pushes.map(\.total)) ?? 0
    return total > 0 ? Double(Figure.median(pushes.map(\.client)) ?? 0) / Double(total) : 0
  }

  private func count(_ way: InsertWay) -> Int { way == .single ? singles : rows }

  private func microseconds(_ samples: [UInt64], _ way: InsertWay) -> Double {
    Figure.rounded(Double(Figure.median(samples) ?? 0) / 1000 / Double(max(1, count(way))))
  }

  var json: JSONValue {
    var members: [String: JSONValue] = [
      "ok": true, "repeats": .int(pushes.count), "ratio": Figure.json(ratio),
      "push": [
        "writes": .int(pushes.first?.writes ?? 0), "requests": .int(pushes.first?.requests ?? 0),
        "queueing_ms": Figure.json(Figure.milliseconds(pushes.map(\.queueing))),
        "total_ms": Figure.json(Figure.milliseconds(pushes.map(\.total))),
        "round_trips_ms": Figure.json(Figure.milliseconds(pushes.map(\.roundTrips))),
        "client_ms": Figure.json(Figure.milliseconds(pushes.map(\.client))), "client_share": Figure.json(clientShare),
      ],
    ]
    for way in InsertWay.allCases {
      let samples = inserts[way] ?? Inserts()
      members[way.rawValue] = [
        "rows": .int(count(way)), "captured_us": Figure.json(microseconds(samples.captured, way)),
        "bare_us": Figure.json(microseconds(samples.bare, way)), "ratio": Figure.json(samples.ratio),
      ]
    }
    return .object(members)
  }

  var text: String {
    let rows = InsertWay.allCases.map { way in
      let samples = inserts[way] ?? Inserts()
      return [
        way.title, "\(count(way))", "\(microseconds(samples.captured, way))", "\(microseconds(samples.bare, way))",
        "\(samples.ratio)",
      ]
    }
    let push = pushes.first
    return TextTable.table(["inserts, µs a row", "rows", "captured", "bare", "speed"], rows)
      + "\nqueueing what they wrote: \(Figure.milliseconds(pushes.map(\.queueing))) ms"
      + "\npush of \(Counted.of(push?.writes ?? 0, "write")) in \(Counted.of(push?.requests ?? 0, "request")): "
      + "\(Figure.milliseconds(pushes.map(\.total))) ms, of which the client "
      + "\(Figure.milliseconds(pushes.map(\.client))) ms (\(Int((clientShare * 100).rounded())) %)"
      + "\nspeed of captured inserts ÷ bare ones, the lower of bulk and single: \(ratio)"
  }
}

extension InsertWay {
  fileprivate var title: String {
    switch self {
    case .statement: "bulk, one statement"
    case .transaction: "one by one, one transaction"
    case .single: "single, a transaction each"
    }
  }
}
