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
    /// What the declaration of a key column makes of an integer.
    var affinity: ColumnAffinity = .none
    /// What an app's table declares the column as.
    var declared: ColumnAffinity = .none

    /// A key column whose values are integers, for certain.
    var holdsIntegers: Bool { kind == .number && isFirm || affinity == .integer }
    /// A key column in which integers stand as integers: one declared as text keeps them as text.
    var storesIntegers: Bool { affinity != .text && (kind == .number || holdsIntegers) }

    /// A key text that would not stand in the column as it is: `1e3` and `01` become other keys.
    func alters(_ part: String) -> Bool {
      affinity == .integer && ColumnAffinity.looksNumeric(part) && Int64(part).map { String($0) } != part
    }
  }

  let name: String
  let config: KizunaSyncTableConfig
  /// Made by the replica, which adds columns when rows bring them. Otherwise the app made it and its schema is left alone.
  let isManaged: Bool
  /// The app has triggers on the table. What they do must not be changed by how a row is written, and they may drop it
  /// without a word, by `RAISE(IGNORE)`.
  let hasAppTriggers: Bool
  let columns: [Column]
  let positions: [String: Int]
  /// Positions of the key columns, in key order.
  let keyPositions: [Int]
  /// Positions of the columns that travel, keys included.
  let syncedPositions: [Int]

  init(
    name: String, config: KizunaSyncTableConfig, isManaged: Bool, hasAppTriggers: Bool = false, columns: [Column]
  ) {
    self.hasAppTriggers = hasAppTriggers
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
    pk(ofKey: key(of: cells))
  }

  /// The key cells of a row, in key order.
  func key(of cells: [SQLiteValue]) -> [SQLiteValue] {
    keyPositions.map { cells[$0] }
  }

  /// The key text of key cells in key order.
  func pk(ofKey key: [SQLiteValue]) -> String? {
    var parts: [String] = []
    parts.reserveCapacity(key.count)
    for (position, cell) in zip(keyPositions, key) {
      guard let part = RowKey.part(cell) else { return nil }
      parts.append(canonical(part, at: position))
    }
    return parts.count == keyPositions.count ? RowKey.spell(parts) : nil
  }

  /// The parts of a key text in the one spelling the server takes; nil when it is no key of this table.
  func parts(of pk: String) -> [String]? {
    RowKey.parts(of: pk, count: keyPositions.count).map { parts in
      zip(keyPositions, parts).map { canonical($1, at: $0) }
    }
  }

  /// Integers have one spelling: `007` and `+7` are `7`. Not where the kind is only guessed.
  func canonical(_ part: String, at position: Int) -> String {
    guard columns[position].holdsIntegers, let integer = Int64(part) else { return part }
    return String(integer)
  }

  /// Whether a row with this key text stands under the one spelling the table keeps.
  func isCanonical(_ cells: [SQLiteValue], _ pk: String) -> Bool {
    guard keyPositions.count == 1 else { return key(of: cells) == keyCells(pk) }
    let position = keyPositions[0]
    // Without an array for each row of a bulk load.
    switch cells[position] {
    case .text(let text):
      return text.utf8.elementsEqual(pk.utf8) && !(columns[position].storesIntegers && String(Int64(pk) ?? 0) == pk)
    case .integer(let integer): return columns[position].storesIntegers && String(integer) == pk
    default: return false
    }
  }

  /// The cells of the key columns, in key order, as they stand in the table. NULL, which no row matches, is what the
  /// table cannot keep as it is.
  func keyCells(_ pk: String) -> [SQLiteValue] {
    let parts = keyPositions.count == 1 ? [pk] : RowKey.parts(of: pk, count: keyPositions.count) ?? []
    return zip(keyPositions, parts).map { position, part in
      if columns[position].storesIntegers, let integer = Int64(part), String(integer) == part {
        return .integer(integer)
      }
      return columns[position].alters(part) ? .null : .text(part)
    }
  }

  /// Why the table cannot hold a row of this key, though the server has one: it would become the row of another key.
  func reasonAgainst(_ key: [SQLiteValue]) -> String? {
    guard let index = key.firstIndex(where: \.isNull) else { return nil }
    let column = columns[keyPositions[index]].name
    return
      "the key column \(column) holds integers, and this key is another spelling of a number; declare \(column) as TEXT"
  }

  // MARK: SQL

  private(set) lazy var quoted = SQL.name(name)
  private(set) lazy var whereKey = SQL.chain(config.key.map { "\(SQL.name($0)) = ?" }, "AND")
  /// Qualified, because SQLite takes a quoted name that is no column for a text.
  private(set) lazy var allColumns = SQL.names(columns.map(\.name), prefix: quoted + ".")
  private(set) lazy var keyColumns = SQL.names(config.key)

  private(set) lazy var selectRow = "SELECT \(allColumns) FROM \(quoted) WHERE \(whereKey)"
  private(set) lazy var deleteRow = "DELETE FROM \(quoted) WHERE \(whereKey)"

  /// Parameters: the new key, the old key. Does nothing where the new one is taken. (`UPDATE OR IGNORE` would take the
  /// place of conflict clauses in the app's triggers.)
  private(set) lazy var moveKey: String = {
    let assignments = config.key.enumerated().map { "\(SQL.name($1)) = ?\($0 + 1)" }
    let old = config.key.enumerated().map { "\(SQL.name($1)) = ?\($0 + config.key.count + 1)" }
    let taken = config.key.enumerated().map { "taken.\(SQL.name($1)) = ?\($0 + 1)" }
    return "UPDATE \(quoted) SET \(assignments.joined(separator: ", ")) WHERE \(SQL.chain(old, "AND")) "
      + "AND NOT EXISTS (SELECT 1 FROM \(quoted) AS taken WHERE \(SQL.chain(taken, "AND")))"
  }()

  // MARK: Writing a row of the server

  // Parameters in the order of `syncedPositions`. An equal row is not touched, so that an app's update triggers fire for
  // real changes only.

  private var syncedNames: [String] { syncedPositions.map { SQL.name(columns[$0].name) } }
  private var others: [(name: String, parameter: Int, isTyped: Bool)] {
    syncedPositions.enumerated().filter { !columns[$1].isKey }
      .map { (SQL.name(columns[$1].name), $0 + 1, columns[$1].declared != .none) }
  }
  private var isItsKey: String {
    SQL.chain(
      syncedPositions.enumerated().filter { columns[$1].isKey }.map { "\(SQL.name(columns[$1].name)) = ?\($0 + 1)" },
      "AND")
  }

  /// `1` and `1.0` are equal to SQLite's operators, but not to an app that divides by them; nor are `a` and `A`, whatever
  /// collation the column has.
  private static func differ(_ old: String, _ new: String) -> String {
    "\(old) COLLATE BINARY IS NOT \(new) OR typeof(\(old)) <> typeof(\(new))"
  }

  /// The usual way, for tables without triggers of the app: an upsert replaces the conflict clauses in them by its own.
  /// ABORT, because the declaration may say that a conflict drops this row or another. The alias keeps a table named
  /// `excluded` apart from SQLite's name for the new values.
  private(set) lazy var upsert: String = {
    let action =
      others.isEmpty
      ? "DO NOTHING"
      : "DO UPDATE SET " + others.map { "\($0.name) = excluded.\($0.name)" }.joined(separator: ", ") + " WHERE "
        + SQL.chain(others.map { Self.differ("stored.\($0.name)", "excluded.\($0.name)") }, "OR")
    return "INSERT OR ABORT INTO \(quoted) AS stored(\(syncedNames.joined(separator: ", "))) "
      + "VALUES (\(SQL.parameters(syncedNames.count))) ON CONFLICT(\(keyColumns)) \(action)"
  }()

  /// nil where there is nothing but the key.
  private(set) lazy var updateRow: String? =
    others.isEmpty
    ? nil
    : "UPDATE \(quoted) SET \(others.map { "\($0.name) = ?\($0.parameter)" }.joined(separator: ", ")) "
      + "WHERE \(isItsKey) AND ("
      // A column with a type makes one kind of value of equal ones.
      + SQL.chain(
        others.map {
          $0.isTyped ? "\($0.name) COLLATE BINARY IS NOT ?\($0.parameter)" : Self.differ($0.name, "?\($0.parameter)")
        }, "OR") + ")"

  private(set) lazy var insertRow =
    "INSERT INTO \(quoted)(\(syncedNames.joined(separator: ", "))) VALUES (\(SQL.parameters(syncedNames.count)))"

  /// Finds a row of the key: whether it is the one that was to be written.
  private(set) lazy var holdsRow: String = {
    let equal = others.map { "\($0.name) COLLATE BINARY IS ?\($0.parameter)" }
    return "SELECT \(equal.isEmpty ? "1" : SQL.chain(equal, "AND")) FROM \(quoted) WHERE \(isItsKey)"
  }()
}
