import CSQLite
import HostKit

/// Reading and showing rows of the synced tables.
extension Replica {
  // MARK: Reading

  /// The cells of a row in the layout's order; nil when the table lacks it.
  func cells(_ layout: TableLayout, pk: String) throws -> [SQLiteValue]? {
    do {
      return try database.first(layout.selectRow, layout.keyCells(pk)) { $0.row() }
    } catch let error as SQLiteError where setAside[layout.name] != nil && error.primaryCode == SQLITE_ERROR {
      // It may not even have the columns any more.
      return nil
    }
  }

  /// The row as a reader sees it; nil when there is none.
  func row(_ table: String, pk: String) throws -> RowMap? {
    let layout = try layout(table)
    return try cells(layout, pk: pk).map { try exactRow(layout, pk: pk, cells: $0) }
  }

  /// The exact column map of a row that is or was in the table.
  func exactRow(_ layout: TableLayout, pk: String, cells: [SQLiteValue]) throws -> RowMap {
    Self.exactRow(layout, cells: cells, listed: try absentList(layout.name, pk: pk))
  }

  /// A NULL cell is null, in a late column absent; `listed` names the exceptions.
  static func exactRow(_ layout: TableLayout, cells: [SQLiteValue], listed: Set<String>) -> RowMap {
    var row: RowMap = [:]
    row.reserveCapacity(cells.count)
    for (column, cell) in zip(layout.columns, cells) {
      if cell.isNull, listed.contains(column.name) != column.isLate { continue }
      row[column.name] = CellCodec.decode(cell, kind: column.kind)
    }
    return row
  }

  func absentList(_ table: String, pk: String) throws -> Set<String> {
    try Self.absentList(table, pk: pk, in: database)
  }

  static func absentList(_ table: String, pk: String, in database: Database) throws -> Set<String> {
    let text = try database.value(
      "SELECT cols FROM _kizunasync_absent WHERE tbl = ? AND pk = ?", .text(table), .text(pk))?.text
    guard let text, case .array(let names)? = try? JSONValue(parsing: text) else { return [] }
    return Set(names.compactMap(\.stringValue))
  }

  // MARK: Absent cells

  /// Records which cells of the row are absent where NULL says null, and the other way round in late columns.
  func noteAbsent(_ table: String, pk: String, row: RowMap?) throws {
    let layout = try layout(table)
    guard let row else { return try noteAbsent(table, pk: pk, columns: []) }
    let listed = layout.columns.filter { column in
      guard !column.isKey, !column.isLocalOnly else { return false }
      switch row[column.name] {
      case nil: return !column.isLate
      case .null?: return column.isLate
      default: return false
      }
    }
    try noteAbsent(table, pk: pk, columns: listed.map(\.name))
  }

  func noteAbsent(_ table: String, pk: String, columns: [String]) throws {
    if columns.isEmpty {
      try database.run("DELETE FROM _kizunasync_absent WHERE tbl = ? AND pk = ?", .text(table), .text(pk))
    } else {
      try database.run(
        "INSERT OR REPLACE INTO _kizunasync_absent VALUES (?, ?, ?)", .text(table), .text(pk),
        .text(JSONWriter.text(.array(columns.map(JSONValue.string)))))
    }
  }

  // MARK: Showing (only while applying)

  /// Makes the visible row equal to `row`, or removes it; touches nothing that is equal already.
  ///
  /// A row that something in this database refuses, or does not let go, is parked and reported, and the transaction goes
  /// on.
  func show(_ table: String, pk: String, row: RowMap?, firm: Bool) throws {
    guard setAside[table] == nil, layouts[table] != nil else { return }
    guard let row else { return try hide(table, pk: pk) }
    if firm { try markUnknownColumnsLate(table: table, seen: row) }
    try ensureForServer(row.keys, of: table)
    try learn(row, table: table, firm: firm)
    do {
      try write(table, pk: pk, row: row)
      try unpark(table, pk: pk)
    } catch let error as SQLiteError where isRefusal(error) {
      try park(table, pk: pk, rowText: JSONWriter.text(.object(row)), reason: error.message)
    }
  }

  private func hide(_ table: String, pk: String) throws {
    let layout = try layout(table)
    do {
      try remove(layout, pk: pk)
      try noteAbsent(table, pk: pk, row: nil)
      try unpark(table, pk: pk)
    } catch let error as SQLiteError where isRefusal(error) {
      try park(table, pk: pk, rowText: "null", reason: error.message)
    }
  }

  private func remove(_ layout: TableLayout, pk: String) throws {
    try change(layout, layout.deleteRow, layout.keyCells(pk))
    if layout.hasAppTriggers, database.changes == 0, try cells(layout, pk: pk) != nil { throw Self.ignored }
  }

  func write(_ table: String, pk: String, row: RowMap) throws {
    let layout = try layout(table)
    var cells = try layout.syncedPositions.map { position in
      let column = layout.columns[position]
      guard let value = row[column.name] else { return SQLiteValue.null }
      let cell = CellCodec.encode(value, kind: column.kind)
      guard column.isKey || column.keeps(value, as: cell) else {
        throw SQLiteError(
          code: SQLITE_CONSTRAINT,
          message: "the declared type of column \(column.name) would change a value of the server; declare it TEXT",
          sql: nil)
      }
      return cell
    }
    let key = layout.keyCells(pk)
    if let reason = layout.reasonAgainst(key) {
      throw SQLiteError(code: SQLITE_MISMATCH, message: reason, sql: nil)
    }
    for (position, cell) in zip(layout.keyPositions, key) {
      if let index = layout.syncedPositions.firstIndex(of: position) { cells[index] = cell }
    }
    if layout.hasAppTriggers {
      try writeBesideTriggers(layout, cells)
    } else {
      try change(layout, layout.upsert, cells)
    }
    try noteAbsent(table, pk: pk, row: row)
  }

  private func writeBesideTriggers(_ layout: TableLayout, _ cells: [SQLiteValue]) throws {
    guard setAside[layout.name] == nil else { return }
    func isHeld() throws -> Bool? { try database.first(layout.holdsRow, cells) { $0.int(0) != 0 } }
    if let update = layout.updateRow {
      try change(layout, update, cells)
      if database.changes > 0 { return }
    }
    switch try isHeld() {
    case true?: return
    case false?: throw Self.ignored
    case nil: break
    }
    try change(layout, layout.insertRow, cells)
    if database.changes == 0 { throw Self.ignored }
  }

  private static let ignored = SQLiteError(
    code: SQLITE_CONSTRAINT, message: "a trigger ignored the change, by RAISE(IGNORE)", sql: nil)

  // MARK: Parked rows

  func park(_ table: String, pk: String, rowText: String, reason: String) throws {
    let isNew = try !isParked(table, pk: pk)
    try database.run(
      "INSERT OR REPLACE INTO _kizunasync_parked VALUES (?, ?, ?, ?)", .text(table), .text(pk), .text(rowText),
      .text(reason))
    if isNew { log.warning("store.row_parked", ["table": .string(table), "reason": .string(reason)]) }
  }

  func isParked(_ table: String, pk: String) throws -> Bool {
    try database.exists("SELECT 1 FROM _kizunasync_parked WHERE tbl = ? AND pk = ?", .text(table), .text(pk))
  }

  func unpark(_ table: String, pk: String) throws {
    try database.run("DELETE FROM _kizunasync_parked WHERE tbl = ? AND pk = ?", .text(table), .text(pk))
  }

  /// Tries the parked rows again: alone, then together with their old versions out of the way, because rows that swap a
  /// unique value only fit when both have moved.
  func retryParked() throws {
    guard try database.exists("SELECT 1 FROM _kizunasync_parked LIMIT 1") else { return }
    for parked in try parkedRows() { try show(parked.table, pk: parked.pk, row: target(of: parked), firm: false) }
    var together = try parkedRows()
    while !together.isEmpty {
      let refused = try showTogether(together)
      if refused.isEmpty { return }
      together.removeAll { refused.contains($0.id) }
    }
  }

  /// After another program changed the schema, or while nobody looked.
  func retryParkedIfDue() throws {
    guard isParkedRetryDue else { return }
    isParkedRetryDue = false
    guard try database.exists("SELECT 1 FROM _kizunasync_parked LIMIT 1") else { return }
    try transaction(applying: true) { try retryParked() }
  }

  private struct ParkedRow {
    var table: String
    var pk: String
    /// Nil is a row that is to go.
    var row: RowMap?
    var id: RowID { RowID(table: table, pk: pk) }
  }

  private struct NotAllFitted: Error {}

  /// Those that can be tried; rows that are no value here wait for another version of theirs.
  private func parkedRows() throws -> [ParkedRow] {
    try database.map("SELECT tbl, pk, row FROM _kizunasync_parked ORDER BY tbl, pk") { row -> ParkedRow? in
      guard let value = try? JSONValue(parsing: row.string(2)) else { return nil }
      return ParkedRow(table: row.string(0), pk: row.string(1), row: value.objectValue)
    }.compactMap(\.self).filter { layouts[$0.table] != nil && setAside[$0.table] == nil }
  }

  private func target(of parked: ParkedRow) throws -> RowMap? {
    if let image = try image(parked.table, pk: parked.pk) {
      return Overlay.visible(image: image, entries: try entries(parked.table, pk: parked.pk))
    }
    return parked.row
  }

  /// - Returns: the rows that do not fit even so, after undoing everything; none when all fitted. All that were refused at
  ///   once, because to begin anew after each takes as long as the square of their number.
  private func showTogether(_ rows: [ParkedRow]) throws -> Set<RowID> {
    var refused: Set<RowID> = []
    func attempt(_ row: ParkedRow, _ body: () throws -> Void) throws {
      do { try body() } catch let error as SQLiteError where isRefusal(error) { refused.insert(row.id) }
    }
    do {
      try database.savepoint {
        for row in rows { try attempt(row) { try remove(layout(row.table), pk: row.pk) } }
        if !refused.isEmpty { throw NotAllFitted() }
        for row in rows {
          guard let target = try target(of: row) else { continue }
          try attempt(row) { try write(row.table, pk: row.pk, row: target) }
        }
        if !refused.isEmpty { throw NotAllFitted() }
        for row in rows { try unpark(row.table, pk: row.pk) }
      }
    } catch is NotAllFitted {
    }
    return refused
  }
}
