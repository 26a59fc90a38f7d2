import HostKit

/// Reads of one moment: everything asked of a session sees the same state of the replica. Valid inside the closure that
/// received it only.
final class ReadSession {
  let database: Database
  private let loadLayout: (String) throws -> TableLayout
  private var layouts: [String: TableLayout] = [:]

  init(database: Database, layout: @escaping (String) throws -> TableLayout) {
    self.database = database
    loadLayout = layout
  }

  /// The table's columns, kinds and key.
  /// - Throws: `UNKNOWN_TABLE`.
  func layout(_ table: String) throws -> TableLayout {
    if let known = layouts[table] { return known }
    let layout = try loadLayout(table)
    layouts[table] = layout
    return layout
  }

  struct Row: Sendable, Equatable {
    var pk: String
    /// The exact column map: missing means absent. The key columns are among them.
    var columns: RowMap
  }

  /// Calls `body` for each row of `SELECT <all columns> FROM <table> <tail>`; `tail` is a WHERE, ORDER BY or LIMIT
  /// clause, its values bound.
  func forEachRow(
    _ table: String, _ tail: String = "", _ arguments: [SQLiteValue] = [], _ body: (Row) throws -> Void
  ) throws {
    let layout = try layout(table)
    let hasAbsent = try database.exists("SELECT 1 FROM _kizunasync_absent WHERE tbl = ? LIMIT 1", .text(table))
    try database.forEachRow("SELECT \(layout.allColumns) FROM \(layout.quoted) \(tail)", arguments) { statement in
      let cells = statement.row()
      guard let pk = layout.pk(of: cells) else { return }
      let listed = hasAbsent ? try Replica.absentList(table, pk: pk, in: database) : []
      try body(Row(pk: pk, columns: Replica.exactRow(layout, cells: cells, listed: listed)))
    }
  }

  func rows(_ table: String, _ tail: String = "", _ arguments: [SQLiteValue] = []) throws -> [Row] {
    var rows: [Row] = []
    try forEachRow(table, tail, arguments) { rows.append($0) }
    return rows
  }

  func row(_ table: String, pk: String) throws -> Row? {
    let layout = try layout(table)
    return try rows(table, "WHERE \(layout.whereKey)", layout.keyCells(pk)).first
  }
}

/// Reads and writes inside one durable transaction.
final class WriteSession {
  let reader: ReadSession
  private let replica: Replica
  fileprivate(set) var writes = 0

  init(_ replica: Replica) {
    self.replica = replica
    reader = ReadSession(database: replica.database) { [unowned replica] in try replica.layout($0) }
  }

  /// Performs one write.
  /// - Returns: the key text of the row.
  @discardableResult
  func apply(_ write: LocalWrite) throws -> String {
    let pk = try replica.apply(write)
    writes += 1
    return pk
  }

  /// The table as it is now: a write may have brought columns.
  func currentLayout(_ table: String) throws -> TableLayout {
    try replica.layout(table)
  }

  /// The row as it is now, with the columns that writes of this session brought.
  func row(_ table: String, pk: String) throws -> RowMap? {
    try replica.row(table, pk: pk)
  }
}
