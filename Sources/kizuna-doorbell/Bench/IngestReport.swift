import HostKit

/// What `bench ingest` prints. Durations in nanoseconds.
struct IngestReport: Sendable {
  var rows: Int
  var pages = 0
  var bytes = 0
  var replica: [UInt64] = []
  var floor: [UInt64] = []
  /// The most memory the process had resident while the replica pulled for the first time.
  var peakBytes = 0

  /// The bare loop's time ÷ the replica's: above 1 the replica is the faster one.
  var ratio: Double { Figure.speed(of: replica, against: floor) }

  var json: JSONValue {
    [
      "ok": true, "rows": .int(rows), "pages": .int(pages), "page_bytes": .int(bytes), "repeats": .int(replica.count),
      "replica_ms": Figure.json(Figure.milliseconds(replica)), "floor_ms": Figure.json(Figure.milliseconds(floor)),
      "peak_memory_mb": Figure.json(Double(peakBytes) / 1_000_000), "ratio": Figure.json(ratio),
    ]
  }

  var text: String {
    """
    first pull of \(Counted.of(rows, "row")) in \(Counted.of(pages, "page")), medians of \(replica.count)
    replica: \(Figure.milliseconds(replica)) ms, peak memory of the process \(peakBytes / 1_000_000) MB
    bare C loop (libcurl, cJSON, SQLite): \(Figure.milliseconds(floor)) ms
    speed, replica ÷ bare loop: \(ratio)
    """
  }
}
