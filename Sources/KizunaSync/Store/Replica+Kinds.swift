import HostKit

/// What is known of the kinds of columns, and what follows when it changes.
extension Replica {
  /// Kinds that the configuration or the app's own declarations settle.
  func learnDeclaredKinds(_ table: String, _ config: KizunaSyncTableConfig) throws {
    try reloadLayout(table)
    var isChanged = false
    for column in try tableColumns(table) {
      if let kind = config.columns[column.name] {
        if kind == .numeric, column.affinity != .text, column.affinity != .none {
          throw KizunaSyncError(
            .configInvalid,
            "the column \(column.name) of \(table) is configured as numeric but declared \(column.declaredType), which rounds; declare it TEXT"
          )
        }
        if try declare(column.name, of: table, as: kind) { isChanged = true }
      } else if let kind = column.impliedKind {
        try database.run(
          "UPDATE _kizunasync_kinds SET kind = ? WHERE tbl = ? AND col = ? AND kind IS NULL", .text(kind.rawValue),
          .text(table), .text(column.name))
      }
    }
    if isChanged { try reloadLayout(table) }
  }

  /// - Returns: whether the layout is out of date now.
  private func declare(_ name: String, of table: String, as kind: ColumnKind) throws -> Bool {
    guard let column = try layout(table)[name], column.kind != kind || !column.isFirm else { return false }
    try change(column, of: table, to: kind, firm: true)
    return true
  }

  /// Takes note of what kinds the values of a row show, and rewrites stored cells where that changes how they are kept.
  ///
  /// A kind that the configuration declares stays. One the server has shown is changed by another value of the server, or
  /// by a local one that its cells cannot hold.
  /// - Parameter firm: the row comes from the server. A local write only fills the gap until the server has spoken.
  func learn(_ row: RowMap, table: String, firm: Bool) throws {
    // Read again once for all columns: a row may teach a thousand of them.
    var isChanged = false
    for (name, value) in row {
      let layout = try layout(table)
      guard let column = layout[name], let seen = CellCodec.kind(of: value) else { continue }
      if let kind = column.kind {
        if layout.config.columns[name] != nil {
          if !CellCodec.fits(kind, seen) { reportMismatch(name, of: table, kind, seen) }
          continue
        }
        if column.isFirm ? CellCodec.fits(kind, seen) : !firm { continue }
        if !firm, CellCodec.keeps(value, kind: kind) { continue }
      }
      // A firm kind that does not fit means values of several kinds: their cells become JSON text.
      try change(column, of: table, to: column.isFirm ? .json : seen, firm: firm)
      isChanged = true
    }
    if isChanged { try reloadLayout(table) }
  }

  /// The value is kept as it came where its column can hold it; that it is of another kind is somebody's mistake.
  private func reportMismatch(_ column: String, of table: String, _ declared: ColumnKind, _ seen: ColumnKind) {
    guard mismatchedColumns.insert("\(table).\(column)").inserted else { return }
    log.warning(
      "store.kind_mismatch",
      [
        "table": .string(table), "column": .string(column), "declared": .string(declared.rawValue),
        "found": .string(seen.rawValue),
      ])
  }

  /// The layout is to be read again afterwards.
  private func change(_ column: TableLayout.Column, of table: String, to kind: ColumnKind, firm: Bool) throws {
    let layout = try layout(table)
    if let old = column.kind, old != kind, old == .json || kind == .json {
      try applying { try rewriteCells(of: column, layout, from: old, to: kind) }
    }
    try database.run(
      "UPDATE _kizunasync_kinds SET kind = ?, firm = ? WHERE tbl = ? AND col = ?", .text(kind.rawValue),
      .integer(firm ? 1 : 0), .text(table), .text(column.name))
    guard column.isKey else { return }
    try reloadLayout(table)
    if column.kind != kind { try respellKeys(column.name, of: table) }
  }

  /// Keys that were written before anybody knew whether they are text or numbers.
  private func respellKeys(_ name: String, of table: String) throws {
    let layout = try layout(table)
    let key = SQL.name(name)
    let (cast, which) =
      layout[name]?.storesIntegers ?? false
      ? ("INTEGER", "typeof(\(key)) = 'text' AND CAST(CAST(\(key) AS INTEGER) AS TEXT) = \(key)")
      : ("TEXT", "typeof(\(key)) = 'integer'")
    try applying {
      let sql = "UPDATE OR IGNORE \(layout.quoted) SET \(key) = CAST(\(key) AS \(cast)) WHERE \(which)"
      if try !changeIfAllowed(layout, sql, []) { try changeRereads { $0.ask(table, keep: .nothing) } }
    }
  }

  private func rewriteCells(
    of column: TableLayout.Column, _ layout: TableLayout, from old: ColumnKind, to new: ColumnKind
  ) throws {
    let name = SQL.name(column.name)
    let cells = try database.map("SELECT \(name), \(layout.keyColumns) FROM \(layout.quoted) WHERE \(name) IS NOT NULL")
    {
      $0.row()
    }
    for row in cells {
      var value = CellCodec.decode(row[0], kind: old)
      // Digits that SQLite could not keep as a number stood as text, and were no text.
      if old == .number { value = NumberTexts(undeclared: [column.name]).number(value, in: column.name) }
      let cell = CellCodec.encode(value, kind: new)
      guard cell != row[0] else { continue }
      let sql = "UPDATE \(layout.quoted) SET \(name) = ? WHERE \(layout.whereKey)"
      // What is not rewritten here comes again as the server sends it.
      if try !changeIfAllowed(layout, sql, [cell] + row.dropFirst()) {
        try changeRereads { $0.ask(layout.name, keep: .nothing) }
      }
    }
  }

  /// The first row the server sends for an empty table shows which columns it has; the others are this host's own, and
  /// their NULL means absent.
  func markUnknownColumnsLate(table: String, seen: RowMap) throws {
    let layout = try layout(table)
    guard !layout.columns.contains(where: { $0.isFirm && layout.config.columns[$0.name] == nil }),
      try !hasRows(table)
    else { return }
    for column in layout.columns where seen[column.name] == nil && !column.isKey && !column.isLate {
      try database.run(
        "UPDATE _kizunasync_kinds SET late = 1 WHERE tbl = ? AND col = ?", .text(table), .text(column.name))
    }
    try reloadLayout(table)
  }
}
