import HostKit

/// The columns of the synced tables: which there are, and what kinds of values they hold.
extension Replica {
  /// How a table's columns differ from those that are known of it.
  struct ColumnChange {
    var came: [String] = []
    var gone: [String] = []
    /// Nothing was known of the table.
    var isFirst = false
    /// Names changed hands, so that cells stand under names the server's values of which they are not.
    var isMixed = false
  }

  /// Brings `kinds` in line with the table: columns may have come, gone or been renamed.
  func followColumns(_ table: String, _ config: KizunaSyncTableConfig) throws -> ColumnChange {
    let present = try tableColumns(table).map(\.name)
    let renames = try followRenames(table, present)
    let known = try journalColumns(of: table).map(\.name)
    var change = ColumnChange(isFirst: known.isEmpty)
    change.gone = known.filter { !present.contains($0) }
    if !change.gone.isEmpty { try drop(change.gone, of: table) }
    for column in present where !known.contains(column) {
      try addColumn(column, to: table, late: !change.isFirst && hasRows(table))
      try learnAgain(column, of: table, from: renames)
      if !change.isFirst { change.came.append(column) }
    }
    change.isMixed = renames.areMixed || (!renames.isEmpty && !change.came.isEmpty)
    try noLongerIgnore(present, of: table)
    let isManaged = try isManaged(table)
    for column in config.columns.keys.sorted() where !present.contains(column) {
      guard isManaged else {
        throw KizunaSyncError(
          .configInvalid, "the table \(table) has no column \(column), which its configuration names")
      }
      try database.execute("ALTER TABLE \(SQL.name(table)) ADD COLUMN \(SQL.name(column))")
      try addColumn(column, to: table, late: hasRows(table))
    }
    if change.isFirst, !isManaged, config.syncMode == .readWrite, try database.rereads()[table] == nil {
      try journalExistingRows(table, config)
    }
    return change
  }

  /// Forgets columns that are no longer there, after what was written to them is queued.
  private func drop(_ columns: [String], of table: String) throws {
    var isKept = true
    if try isHarvestPending() {
      do {
        // With the layouts as they were when it was written.
        for table in settings.tables.keys { try reloadLayout(table) }
        captureWidth = try journalWidth()
        try database.savepoint { try harvest() }
      } catch is SQLiteError {
        isApplying = false
        isKept = false
      }
    }
    for column in columns {
      try database.run("DELETE FROM _kizunasync_kinds WHERE tbl = ? AND col = ?", .text(table), .text(column))
      log.warning(
        "store.column_gone",
        ["table": .string(table), "column": .string(column), "queued_values_kept": .bool(isKept)])
    }
  }

  /// Rows an app's table holds when it is first synced are the app's own: they go to the server like fresh inserts,
  /// because the first transfer from the start would otherwise remove what it does not contain.
  private func journalExistingRows(_ table: String, _ config: KizunaSyncTableConfig) throws {
    guard try hasRows(table) else { return }
    let columns = try database.map(
      "SELECT col, slot FROM _kizunasync_kinds WHERE tbl = ? ORDER BY slot", [.text(table)]
    ) { ($0.string(0), $0.int(1)) }
    let names = SQL.names(columns.map(\.0))
    let slots = columns.map { "n\($0.1)" }.joined(separator: ", ")
    let badKey = config.key.map { "typeof(\(SQL.name($0))) NOT IN ('text', 'integer') OR \(SQL.name($0)) = ''" }
      .joined(separator: " OR ")
    guard try !database.exists("SELECT 1 FROM \(SQL.name(table)) WHERE \(badKey)") else {
      throw KizunaSyncError(
        .configInvalid, "the table \(table) holds rows whose key is neither text nor an integer; correct or remove them"
      )
    }
    try refuseMalformedText(table)
    try database.run(
      "INSERT INTO _kizunasync_capture(tbl, op, at, \(slots)) SELECT ?, 'i', ?, \(names) FROM \(SQL.name(table))",
      .text(table), .integer(clock.wallMilliseconds))
    if config.bucketColumn != nil, case .byOwner = config.bucket, try database.meta(.owner).isNull {
      try database.setMeta(.adopting, 1)
    }
    log.info("store.adopted", ["table": .string(table), "rows": .int(database.changes)])
  }

  /// The harvest would take such cells out of the app's rows.
  private func refuseMalformedText(_ table: String) throws {
    let columns = try tableColumns(table).map(\.name).filter { !settings.localOnlyColumns.contains($0) }
    try database.forEachRow("SELECT \(SQL.names(columns)) FROM \(SQL.name(table))") { row in
      for (index, column) in columns.enumerated() {
        guard case .malformed = row.value(Int32(index)) else { continue }
        throw KizunaSyncError(
          .configInvalid,
          "the column \(column) of \(table) holds text that is not UTF-8, which cannot be synced; correct it or make it a blob"
        )
      }
    }
  }

  /// The triggers did not know these columns yet: what the waiting journal rows of a key left out is taken from the row.
  func journalUnseenCells(_ table: String, _ columns: [String]) throws {
    try reloadLayout(table)
    let layout = try layout(table)
    let pending = "SELECT seq FROM _kizunasync_capture WHERE tbl = ? AND op <> 'd' AND seq > ?"
    let harvested = try database.meta(.harvested)
    for seq in try database.map(pending, [.text(table), harvested.isNull ? 0 : harvested], { $0.int64(0) }) {
      for column in columns {
        guard let slot = layout[column]?.slot else { continue }
        let sameKey = layout.keyPositions.map { position in
          "t.\(SQL.name(layout.columns[position].name)) IS n\(layout.columns[position].slot)"
        }.joined(separator: " AND ")
        try database.run(
          "UPDATE _kizunasync_capture SET n\(slot) = (SELECT t.\(SQL.name(column)) FROM \(layout.quoted) t "
            + "WHERE \(sameKey)) WHERE seq = ?", .integer(seq))
      }
    }
  }

  // MARK: Columns

  func hasRows(_ table: String) throws -> Bool {
    // An index may need a collation that is not known here.
    try database.exists("SELECT 1 FROM \(SQL.name(table)) NOT INDEXED LIMIT 1")
  }

  /// Records a column of the table and makes room for it in the journal.
  private func addColumn(_ column: String, to table: String, late: Bool) throws {
    let slot = try database.value("SELECT slots FROM _kizunasync_tables WHERE name = ?", .text(table))?.integer ?? 0
    try database.run("UPDATE _kizunasync_tables SET slots = slots + 1 WHERE name = ?", .text(table))
    try database.run(
      "INSERT INTO _kizunasync_kinds(tbl, col, slot, late) VALUES (?, ?, ?, ?)", .text(table), .text(column),
      .integer(slot), .integer(late ? 1 : 0))
    try makeSlot(Int(slot))
  }

  /// Adds the columns a row or a write names and the table lacks. An app's table is never altered: there they are
  /// reported once and left out.
  func ensure(_ names: some Sequence<String>, of table: String) throws {
    let layout = try layout(table)
    let missing = names.filter { layout.positions[$0] == nil }
    guard !missing.isEmpty else { return }
    let late = try hasRows(table)
    // SQLite compares column names without case.
    var taken = Set(layout.columns.map { $0.name.lowercased() })
    var isChanged = false
    for column in missing.sorted() {
      guard layout.isManaged, !column.isEmpty, !column.utf8.contains(0), taken.insert(column.lowercased()).inserted
      else {
        try ignore(column, of: table)
        continue
      }
      try database.execute("ALTER TABLE \(layout.quoted) ADD COLUMN \(SQL.name(column))")
      try addColumn(column, to: table, late: late)
      isChanged = true
    }
    guard isChanged else { return }
    try makeTriggers(table, layout.config)
    try noteDeclaration(of: table)
    try reloadLayouts()
  }

  private func noLongerIgnore(_ columns: [String], of table: String) throws {
    let present = Set(columns.map { "\(table).\($0)" })
    ignoredColumns.subtract(present)
    let known = try database.ignoredColumns()
    let left = known.filter { !present.contains($0) }
    if left != known { try database.setIgnoredColumns(left) }
  }

  private func ignore(_ column: String, of table: String) throws {
    guard ignoredColumns.insert("\(table).\(column)").inserted else { return }
    let known = try database.ignoredColumns()
    if !known.contains("\(table).\(column)") { try database.setIgnoredColumns(known + ["\(table).\(column)"]) }
    log.warning("store.column_ignored", ["table": .string(table), "column": .string(column)])
  }
}
