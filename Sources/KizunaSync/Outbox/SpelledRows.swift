import HostKit

/// The rows of one key that stand in a table under several spellings: SQLite tells `7` from `'7'` and the two cases of a
/// uuid apart, the server does not.
///
/// Followed change by change through the journal, so that the key's row is gone only when the last of them is.
struct SpelledRows: Equatable {
  private struct Row: Equatable {
    var key: [SQLiteValue]
    var cells: RowMap
  }

  /// In the order of their last change.
  private var rows: [Row] = []

  var isEmpty: Bool { rows.isEmpty }
  var keys: [[SQLiteValue]] { rows.map(\.key) }

  /// A row came, or it changed; its key may have been spelled otherwise.
  mutating func put(_ key: [SQLiteValue], was old: [SQLiteValue]? = nil, _ cells: RowMap) {
    rows.removeAll { $0.key == old ?? key || $0.key == key }
    rows.append(Row(key: key, cells: cells))
  }

  /// - Returns: the row that stands for the key from now on; nil when there is none.
  mutating func remove(_ key: [SQLiteValue]) -> RowMap? {
    rows.removeAll { $0.key == key }
    return rows.last?.cells
  }
}
