import HostKit

// The whole state as the changes that build it.
extension SyncServerState {
  /// Calls `body` with every change that builds this state from an empty one, in a fixed order. Configuration is not
  /// part of it.
  public func forEachChange<E: Error>(_ body: (StateChange) throws(E) -> Void) throws(E) {
    try body(.nextSeq(nextSeq))
    try body(.reapHorizon(reapHorizon))
    for (name, table) in tables.sorted(by: { JSONWriter.bytewise($0.key, $1.key) }) {
      for (key, row) in table.rows.sorted(by: { $0.value.seq < $1.value.seq }) {
        try body(.row(table: name, key: key, row))
      }
      for (place, tombstone) in table.tombstones.sorted(by: { $0.value.seq < $1.value.seq }) {
        try body(.tombstone(table: name, place, tombstone))
      }
    }
    for grant in sortedGrants { try body(.grant(grant, held: true)) }
    for (id, entry) in ledger.sorted(by: { JSONWriter.bytewise($0.key, $1.key) }) {
      try body(.verdict(id: id, entry))
    }
  }

  /// The whole state as one JSON document; equal states give equal documents.
  public var json: JSONValue {
    var changes: [JSONValue] = []
    forEachChange { changes.append($0.json) }
    return ["version": 1, "changes": .array(changes)]
  }

  /// Restores a state from `json`; nil when the document is not one of this version.
  public init?(_ json: JSONValue, configuration: SyncServerConfiguration) {
    guard json["version"] == 1, let changes = json["changes"]?.arrayValue else { return nil }
    self.init(configuration: configuration)
    for value in changes {
      guard let change = StateChange(value) else { return nil }
      replay(CollectionOfOne(change))
    }
  }

  var sortedGrants: [Grant] {
    grants.sorted { left, right in
      if left.user != right.user { return left.user < right.user }
      if left.table != right.table { return JSONWriter.bytewise(left.table, right.table) }
      return (left.bucket?.text ?? "").utf8.lexicographicallyPrecedes((right.bucket?.text ?? "").utf8)
    }
  }

  /// The whole state as text for people and for tests that compare it, one fact a line, in a fixed order:
  ///
  ///     seq 3, reaped to 0
  ///     todos 0e1… @3 in 0a1… {"title":"milk"}
  ///     todos 0e2… @2 in 0a1… deleted 2026-01-01T00:00:04.000Z
  ///     grant 0a1… todos 0a1…
  ///     verdict 0f1… applied todos 0e1… by 0a1…
  public func dump() -> String {
    var lines = ["seq \(horizon), reaped to \(reapHorizon)"]
    for (name, table) in tables.sorted(by: { JSONWriter.bytewise($0.key, $1.key) }) {
      var changes = table.rows.map { key, row in
        (row.seq, "\(key) @\(row.seq)\(inBucket(row.bucket)) \(JSONWriter.text(.object(row.cells)))")
      }
      changes += table.tombstones.map { place, tombstone in
        let time = UTCTimestamp.text(milliseconds: tombstone.deletedAt)
        return (tombstone.seq, "\(place.key) @\(tombstone.seq)\(inBucket(place.bucket)) deleted \(time)")
      }
      lines += changes.sorted { $0.0 < $1.0 }.map { "\(name) \($0.1)" }
    }
    lines += sortedGrants.map { "grant \($0.user) \($0.table)" + ($0.bucket.map { " \($0)" } ?? "") }
    for (id, entry) in ledger.sorted(by: { JSONWriter.bytewise($0.key, $1.key) }) {
      let verdict = entry.reason?.rawValue ?? "applied"
      lines.append("verdict \(id) \(verdict) \(entry.table) \(entry.key) by \(entry.user)")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private func inBucket(_ bucket: ByteKey?) -> String { bucket.map { " in \($0)" } ?? "" }
}
