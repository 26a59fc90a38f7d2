import HostKit

/// Rows of one table that shared a unique value with a row about to be written, and whose fate is not known yet.
///
/// A statement that may not displace them fails or is ignored, and leaves nothing in the journal. So when the journal
/// shows that the new row stands in the table, a noted row that still conflicts with it has gone without a word. Followed
/// change by change: what the journal says of a noted row itself is not a displacement.
struct NotedRows {
  struct Row: Equatable {
    /// The note's row id.
    var number: Int64
    /// The newest journal row before the note.
    var base: Int64
    var key: [SQLiteValue]
    var cells: [SQLiteValue]
    /// The row was changed since.
    var isChanged = false
  }

  /// What a journal row means for the rows noted before it.
  struct Outcome: Equatable {
    /// They went before the row came.
    var displaced: [Row] = []
    /// The row of its own key that an insert replaced.
    var replaced: Row?
  }

  /// A statement notes a few rows and then either writes or does not; between the two only an app's own triggers write.
  /// What is noted before so many others was in vain. Rows of one place in the journal may belong to one statement.
  static let most = 100

  private(set) var rows: [Row] = []

  var isEmpty: Bool { rows.isEmpty }

  mutating func note(_ row: Row) {
    rows.removeAll { $0.key == row.key }
    rows.append(row)
    while rows.count > Self.most, let first = rows.first, first.base < row.base { rows.removeFirst() }
  }

  mutating func delete(_ key: [SQLiteValue]) {
    rows.removeAll { $0.key == key }
  }

  /// An insert, or with `old` an update, left the row with the key `new` and these cells.
  /// - Parameter conflicts: whether the noted cells cannot stand beside the new ones.
  mutating func write(
    _ new: [SQLiteValue], was old: [SQLiteValue]?, cells: [SQLiteValue], conflicts: (Row) throws -> Bool
  ) rethrows -> Outcome {
    var outcome = Outcome()
    var kept: [Row] = []
    for var row in rows {
      if row.key == old {
        // It is the row that was written.
        (row.key, row.cells, row.isChanged) = (new, cells, true)
        kept.append(row)
      } else if row.key == new {
        if old == nil { outcome.replaced = row } else { outcome.displaced.append(row) }
      } else if try conflicts(row) {
        outcome.displaced.append(row)
      } else {
        kept.append(row)
      }
    }
    rows = kept
    return outcome
  }
}
