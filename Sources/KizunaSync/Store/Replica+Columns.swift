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
    let isKnown = Set(known)
    let came = present.filter { !isKnown.contains($0) }
    try addColumns(came, to: table, late: !change.isFirst && hasRows(table))
    for column in came { try learnAgain(column, of: table, from: renames) }
    if !change.isFirst { change.came = came }
    change.isMixed = renames.areMixed || (!renames.isEmpty && !change.came.isEmpty)
    try noLongerIgnore(present, of: table)
    let isManaged = try isManaged(table)
    let isPresent = Set(present)
    let lacking = config.columns.keys.filter { !isPresent.contains($0) }.sorted()
    if let column = lacking.first, !isManaged {
      throw KizunaSyncError(
        .configInvalid, "the table \(table) has no column \(column), which its configuration names")
    }
    try extend(table, config, by: lacking, late: hasRows(table))
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
    let rows = database.changes
    if config.bucketColumn != nil, case .byOwner = config.bucket, try database.meta(.owner).isNull {
      try database.setMeta(.adopting, 1)
    }
    log.info("store.adopted", ["table": .string(table), "rows": .int(rows)])
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
    let pending = "SELECT seq FROM _kizunasync_capture WHERE tbl = ? AND op <> 'd' AND (seq < 0 OR seq > ?)"
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

  /// Records columns of the table and makes room for them in the journal.
  /// - Throws: `CONFIG_INVALID` when there is no room for so many.
  private func addColumns(_ columns: [String], to table: String, late: Bool) throws {
    if columns.isEmpty { return }
    var slot = try firstFreeSlot(of: table, for: columns.count)
    for column in columns {
      try database.run(
        "INSERT INTO _kizunasync_kinds(tbl, col, slot, late) VALUES (?, ?, ?, ?)", .text(table), .text(column),
        .integer(slot), .integer(late ? 1 : 0))
      slot += 1
    }
    try database.run("UPDATE _kizunasync_tables SET slots = ? WHERE name = ?", .integer(slot), .text(table))
    try widenJournal(to: Int(slot))
  }

  private func firstFreeSlot(of table: String, for count: Int) throws -> Int64 {
    let slots = try database.value("SELECT slots FROM _kizunasync_tables WHERE name = ?", .text(table))?.integer ?? 0
    if Int(slots) + count <= TableDeclaration.maximumColumns { return slots }
    let columns = try database.map("SELECT col FROM _kizunasync_kinds WHERE tbl = ? ORDER BY slot", [.text(table)]) {
      $0.string(0)
    }
    try refuseWidth(columns.count + count, of: table)
    // Columns that are gone have left their places, which nothing refers to once the journal is empty.
    guard try pendingJournalRows() == 0 else {
      throw KizunaSyncError(
        .storeBusy, "the columns of \(table) change while writes to it wait in the journal; it is tried again")
    }
    for (slot, column) in columns.enumerated() {
      try database.run(
        "UPDATE _kizunasync_kinds SET slot = ? WHERE tbl = ? AND col = ?", .integer(Int64(slot)), .text(table),
        .text(column))
    }
    return Int64(columns.count)
  }

  /// - Throws: `CONFIG_INVALID` for more columns than a synced table may have.
  func refuseWidth(_ count: Int, of table: String) throws {
    guard count > TableDeclaration.maximumColumns else { return }
    throw KizunaSyncError(
      .configInvalid,
      "the table \(table) has \(count) columns, and at most \(TableDeclaration.maximumColumns) can be synced: the journal of "
        + "changes keeps two values of each, and SQLite makes no wider table; split it")
  }

  /// Gives a table of the replica's own more columns, in one step where nobody can notice: after each that is added SQLite
  /// reads the whole schema again.
  private func extend(_ table: String, _ config: KizunaSyncTableConfig, by new: [String], late: Bool) throws {
    if new.isEmpty { return }
    let known = try journalColumns(of: table).map(\.name)
    try refuseWidth(known.count + new.count, of: table)
    // They name all columns, and are made anew afterwards.
    try dropTriggers(of: table)
    if try new.count > 3 && !database.isReading && !hasRows(table) && isPlain(table) {
      try database.savepoint {
        try database.execute("DROP TABLE \(SQL.name(table))")
        try makeTable(table, config, columns: known + new)
      }
    } else {
      for column in new { try database.execute("ALTER TABLE \(SQL.name(table)) ADD COLUMN \(SQL.name(column))") }
    }
    try addColumns(new, to: table, late: late)
  }

  /// Whether a table has no index or trigger of somebody else's.
  private func isPlain(_ table: String) throws -> Bool {
    try !database.exists(
      "SELECT 1 FROM sqlite_schema WHERE tbl_name = ? COLLATE NOCASE AND type <> 'table' AND sql IS NOT NULL",
      .text(table))
  }

  /// Like `ensure`, for what a row of the server names. A table that cannot have so many columns is set aside.
  /// - Throws: `TableFailure`.
  func ensureForServer(_ names: some Sequence<String>, of table: String) throws {
    do {
      try ensure(names, of: table)
    } catch let error as KizunaSyncError where error.code == ErrorCode.configInvalid.rawValue {
      throw TableFailure(table: table, reason: error.message, error: error)
    }
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
    var new: [String] = []
    for column in missing.sorted() {
      guard layout.isManaged, !column.isEmpty, !column.utf8.contains(0), taken.insert(column.lowercased()).inserted
      else {
        try ignore(column, of: table)
        continue
      }
      new.append(column)
    }
    guard !new.isEmpty else { return }
    try extend(table, layout.config, by: new, late: late)
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
