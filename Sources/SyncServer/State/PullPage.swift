import HostKit

/// Decides where a page ends (Kizuna wire contract §4.4): at the limit, at the scan cap, or with the stream, which closes
/// the checkpoint.
struct PullPage {
  enum Entry {
    case row(table: String, key: ByteKey, JSONValue, overwritten: [OverwrittenCell])
    case tombstone(table: String, key: ByteKey, deletedAt: Int64)
  }

  private let cursor: CursorToken
  private let limit: Int
  private let maximumScan: Int
  private var rows: [JSONValue] = []
  private var tombstones: [JSONValue] = []
  private var conflicts: [(table: String, key: ByteKey, column: String, json: JSONValue)] = []
  private var examined = 0
  private var lastExamined: Int64 = 0
  private var lastDelivered: Int64 = 0
  /// Where the next page goes on; nil while the page may still close the checkpoint.
  private var continuesAfter: Int64?

  init(cursor: CursorToken, limit: Int, maximumScan: Int) {
    self.cursor = cursor
    self.limit = limit
    self.maximumScan = maximumScan
  }

  /// Offers the stream's next candidate, nil for a withheld one. False when the page is full and does not take it.
  mutating func take(seq: Int64, _ entry: Entry?) -> Bool {
    if examined == maximumScan {
      continuesAfter = lastExamined
      return false
    }
    if entry != nil, rows.count + tombstones.count == limit {
      continuesAfter = lastDelivered
      return false
    }
    examined += 1
    lastExamined = seq
    guard let entry else { return true }
    lastDelivered = seq
    switch entry {
    case .row(let table, let key, let row, let overwritten):
      rows.append(["table": .string(table), "pk": .string(key.text), "row": row, "seq": .string(String(seq))])
      for cell in overwritten where row[cell.column] != nil {
        conflicts.append((table, key, cell.column, conflict(cell, table, key, seq)))
      }
    case .tombstone(let table, let key, let deletedAt):
      tombstones.append([
        "table": .string(table), "pk": .string(key.text), "seq": .string(String(seq)),
        "deleted_at": .string(UTCTimestamp.text(milliseconds: deletedAt)),
      ])
    }
    return true
  }

  private func conflict(_ cell: OverwrittenCell, _ table: String, _ key: ByteKey, _ seq: Int64) -> JSONValue {
    [
      "table": .string(table), "pk": .string(key.text), "column_name": .string(cell.column),
      "loser_value": cell.value, "winner_mutation_id": .string(cell.winner), "winner_seq": .string(String(seq)),
      "conflict_mode": .string(cell.mode.rawValue),
    ]
  }

  /// - Parameter horizon: the highest committed seq, whether or not the caller may see it.
  func answer(horizon: Int64) -> JSONValue {
    let next =
      continuesAfter.map { CursorToken(start: cursor.checkpoint, highWater: $0) }
      ?? CursorToken(highWater: max(horizon, cursor.highWater))
    var members: [String: JSONValue] = [
      "rows": .array(rows), "tombstones": .array(tombstones), "cursor": .string(next.description),
      "has_more": .bool(continuesAfter != nil), "signal": nil,
    ]
    if !conflicts.isEmpty {
      let sorted = conflicts.sorted { left, right in
        if left.table != right.table { return JSONWriter.bytewise(left.table, right.table) }
        return left.key == right.key ? JSONWriter.bytewise(left.column, right.column) : left.key < right.key
      }
      members["conflicts"] = .array(sorted.map(\.json))
    }
    return .object(members)
  }
}
