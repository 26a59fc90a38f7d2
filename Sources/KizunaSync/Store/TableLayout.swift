/// One synced table as it stands: its columns with their kinds, and the SQL that addresses its rows.
///
/// A snapshot: when columns or kinds change the replica makes a new one.
final class TableLayout {
  struct Column: Equatable {
    var name: String
    /// The number under which the capture journal keeps the column's values.
    var slot: Int
    /// nil until a value has been seen.
    var kind: ColumnKind?
    /// The kind comes from the server or the configuration; a local write only guesses.
    var isFirm: Bool
    /// The column came when the table had rows: NULL means absent, and the row's `absent` record lists the nulls.
    var isLate: Bool
    var isKey: Bool
    /// Never sent, and never touched by what the server sends.
    var isLocalOnly: Bool
  }

  let name: String
  let config: KizunaSyncTableConfig
  /// Made by the replica, which adds columns when rows bring them. Otherwise the app made it and its schema is left alone.
  let isManaged: Bool
  let columns: [Column]
  let positions: [String: Int]
  /// Positions of the key columns, in key order.
  let keyPositions: [Int]
  /// Positions of the columns that travel, keys included.
  let syncedPositions: [Int]

  init(name: String, config: KizunaSyncTableConfig, isManaged: Bool, columns: [Column]) {
    self.name = name
    self.config = config
    self.isManaged = isManaged
    self.columns = columns
    positions = Dictionary(columns.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    keyPositions = config.key.compactMap { key in columns.firstIndex { $0.name == key } }
    syncedPositions = columns.indices.filter { !columns[$0].isLocalOnly || columns[$0].isKey }
  }

  subscript(column: String) -> Column? {
    positions[column].map { columns[$0] }
  }

  func isKey(_ column: String) -> Bool { config.key.contains(column) }

  /// The bucket column if the signed-in user's id goes there.
  var ownerColumn: String? {
    if case .byOwner(let column) = config.bucket { column } else { nil }
  }

  // MARK: Keys

  /// The key text of a row; nil for a key that cannot be spelled.
  func pk(of cells: [SQLiteValue]) -> String? {
    let parts = keyPositions.compactMap { RowKey.part(cells[$0]) }
    return parts.count == keyPositions.count ? RowKey.spell(parts) : nil
  }

  /// The cells of the key columns, in key order.
  func keyCells(_ pk: String) -> [SQLiteValue] {
    let parts = keyPositions.count == 1 ? [pk] : RowKey.parts(of: pk, count: keyPositions.count) ?? []
    return zip(keyPositions, parts).map { position, part in
      if columns[position].kind == .number, let integer = Int64(part) { return .integer(integer) }
      return .text(part)
    }
  }

  // MARK: SQL

  private(set) lazy var quoted = SQL.name(name)
  private(set) lazy var whereKey = config.key.map { "\(SQL.name($0)) = ?" }.joined(separator: " AND ")
  /// Qualified, because SQLite takes a quoted name that is no column for a text.
  private(set) lazy var allColumns = SQL.names(columns.map(\.name), prefix: quoted + ".")
  private(set) lazy var keyColumns = SQL.names(config.key)

  private(set) lazy var selectRow = "SELECT \(allColumns) FROM \(quoted) WHERE \(whereKey)"
  private(set) lazy var deleteRow = "DELETE FROM \(quoted) WHERE \(whereKey)"

  /// Writes a row of the server: parameters in the order of `syncedPositions`. An equal row is not touched, so that an
  /// app's update triggers fire for real changes only.
  private(set) lazy var upsert: String = {
    let names = syncedPositions.map { SQL.name(columns[$0].name) }
    let others = syncedPositions.filter { !columns[$0].isKey }.map { SQL.name(columns[$0].name) }
    let action =
      others.isEmpty
      ? "DO NOTHING"
      : "DO UPDATE SET " + others.map { "\($0) = excluded.\($0)" }.joined(separator: ", ") + " WHERE "
        + others.map { "\(quoted).\($0) IS NOT excluded.\($0)" }.joined(separator: " OR ")
    return "INSERT INTO \(quoted)(\(names.joined(separator: ", "))) VALUES (\(SQL.parameters(names.count))) "
      + "ON CONFLICT(\(keyColumns)) \(action)"
  }()
}
