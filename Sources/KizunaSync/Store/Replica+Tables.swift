import HostKit

/// Making, adopting and following the synced tables.
extension Replica {
  // MARK: Adoption

  /// Makes the table if the file lacks it, or takes the app's own; then sees to its triggers.
  func adopt(_ table: String) throws {
    guard let config = settings.tables[table] else { return }
    let type = try database.value(
      "SELECT CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual table' ELSE type END FROM sqlite_schema WHERE name = ?",
      .text(table))?.text
    switch type {
    case nil: try makeTable(table, config)
    case "table": try recordTable(table, managed: false)
    default:
      throw KizunaSyncError(.configInvalid, "\(table) is a \(type ?? "") in the database; only a table can be synced")
    }
    try checkKey(table, config)
    try follow(table, config)
  }

  /// Brings bookkeeping, triggers and journal in line with the table's columns.
  private func follow(_ table: String, _ config: KizunaSyncTableConfig) throws {
    let came = try followColumns(table, config)
    try learnDeclaredKinds(table, config)
    try makeTriggers(table, config)
    if !came.isEmpty { try journalUnseenCells(table, came) }
  }

  private func makeTable(_ table: String, _ config: KizunaSyncTableConfig) throws {
    // The shape of a version 4 uuid, so that an insert by plain SQL may leave the id out.
    let uuid =
      "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || "
      + "substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
    var columns = config.key.map { "\(SQL.name($0)) NOT NULL" }
    if config.key == ["id"] { columns[0] += " DEFAULT (\(uuid))" }
    // The bucket column too: SQL must be able to name it, and it is filled in where a write leaves it out.
    let named = Set(config.columns.keys).union([config.bucketColumn, config.softDeleteColumn].compactMap(\.self))
    columns += named.subtracting(config.key).sorted().map(SQL.name)
    try database.execute(
      "CREATE TABLE \(SQL.name(table))(\(columns.joined(separator: ", ")), PRIMARY KEY (\(SQL.names(config.key))))")
    try recordTable(table, managed: true)
  }

  private func recordTable(_ table: String, managed: Bool) throws {
    let isKnown = try database.exists("SELECT 1 FROM _kizunasync_tables WHERE name = ?", .text(table))
    guard !isKnown || managed else { return }
    try database.run(
      "INSERT OR REPLACE INTO _kizunasync_tables(name, managed, slots) VALUES (?, ?, coalesce("
        + "(SELECT slots FROM _kizunasync_tables WHERE name = ?), 0))", .text(table), .integer(managed ? 1 : 0),
      .text(table))
  }

  /// The configured key must be the primary key or have a unique index, or rows could not be told apart.
  private func checkKey(_ table: String, _ config: KizunaSyncTableConfig) throws {
    let columns = try tableColumns(table).map(\.name)
    let missing = config.key.filter { !columns.contains($0) }
    guard missing.isEmpty else {
      throw KizunaSyncError(
        .configInvalid,
        "the table \(table) has no column \(missing.joined(separator: ", ")), which its configured key names")
    }
    let isUnique = try uniqueSets(table).contains { Set($0.map(\.column)) == Set(config.key) && !$0.isEmpty }
    guard isUnique else {
      throw KizunaSyncError(
        .configInvalid,
        "the key of table \(table) is configured as (\(config.key.joined(separator: ", "))), but the table has neither a primary key nor a unique index on exactly these columns"
      )
    }
  }

  /// Brings `kinds` in line with the table: columns may have come or gone.
  /// - Returns: the columns that came.
  private func followColumns(_ table: String, _ config: KizunaSyncTableConfig) throws -> [String] {
    let present = try tableColumns(table)
    let known = Set(
      try database.map("SELECT col FROM _kizunasync_kinds WHERE tbl = ?", [.text(table)]) { $0.string(0) })
    let isFirst = known.isEmpty
    var came: [String] = []
    for column in present where !known.contains(column.name) {
      try addColumn(column.name, to: table, late: !isFirst && hasRows(table))
      if !isFirst { came.append(column.name) }
    }
    for column in known.subtracting(present.map(\.name)) {
      try database.run("DELETE FROM _kizunasync_kinds WHERE tbl = ? AND col = ?", .text(table), .text(column))
    }
    let isManaged =
      try database.value("SELECT managed FROM _kizunasync_tables WHERE name = ?", .text(table)) == .integer(1)
    for column in config.columns.keys.sorted() where !present.contains(where: { $0.name == column }) {
      guard isManaged else {
        throw KizunaSyncError(
          .configInvalid, "the table \(table) has no column \(column), which its configuration names")
      }
      try database.execute("ALTER TABLE \(SQL.name(table)) ADD COLUMN \(SQL.name(column))")
      try addColumn(column, to: table, late: hasRows(table))
    }
    if isFirst, !isManaged, config.syncMode == .readWrite { try journalExistingRows(table, config) }
    return came
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
    try database.run(
      "INSERT INTO _kizunasync_capture(tbl, op, at, \(slots)) SELECT ?, 'i', ?, \(names) FROM \(SQL.name(table))",
      .text(table), .integer(clock.wallMilliseconds))
    if config.bucketColumn != nil, case .byOwner = config.bucket, try database.meta(.owner).isNull {
      try database.setMeta(.adopting, 1)
    }
    log.info("store.adopted", ["table": .string(table), "rows": .int(database.changes)])
  }

  /// Kinds that the configuration or the app's own declarations settle.
  private func learnDeclaredKinds(_ table: String, _ config: KizunaSyncTableConfig) throws {
    for column in try tableColumns(table) {
      if let kind = config.columns[column.name] {
        if kind == .numeric, !["TEXT", "NONE"].contains(column.affinity) {
          throw KizunaSyncError(
            .configInvalid,
            "the column \(column.name) of \(table) is configured as numeric but declared \(column.declaredType), which rounds; declare it TEXT"
          )
        }
        try database.run(
          "UPDATE _kizunasync_kinds SET kind = ?, firm = 1 WHERE tbl = ? AND col = ?", .text(kind.rawValue),
          .text(table), .text(column.name))
      } else if let kind = column.impliedKind {
        try database.run(
          "UPDATE _kizunasync_kinds SET kind = ? WHERE tbl = ? AND col = ? AND kind IS NULL", .text(kind.rawValue),
          .text(table), .text(column.name))
      }
    }
  }

  // MARK: Following changes

  /// Somebody changed the schema since the layouts were read: new columns join, triggers are made again.
  func schemaChanged() throws {
    for table in settings.tables.keys.sorted() {
      guard let config = settings.tables[table] else { continue }
      guard try database.exists("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", .text(table)) else {
        throw KizunaSyncError(
          .store, "the synced table \(table) was dropped; restore it, or reset the replica after making it again")
      }
      try follow(table, config)
    }
    try reloadLayouts()
  }

  /// The triggers did not know these columns yet: what the waiting journal rows of a key left out is taken from the row.
  private func journalUnseenCells(_ table: String, _ columns: [String]) throws {
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
    try database.exists("SELECT 1 FROM \(SQL.name(table)) LIMIT 1")
  }

  /// Records a column of the table and makes room for it in the journal.
  private func addColumn(_ column: String, to table: String, late: Bool) throws {
    let slot = try database.value("SELECT slots FROM _kizunasync_tables WHERE name = ?", .text(table))?.integer ?? 0
    try database.run("UPDATE _kizunasync_tables SET slots = slots + 1 WHERE name = ?", .text(table))
    try database.run(
      "INSERT INTO _kizunasync_kinds(tbl, col, slot, late) VALUES (?, ?, ?, ?)", .text(table), .text(column),
      .integer(slot), .integer(late ? 1 : 0))
    let hasSlot = try database.exists(
      "SELECT 1 FROM pragma_table_info('_kizunasync_capture') WHERE name = ?", .text("n\(slot)"))
    guard !hasSlot else { return }
    try database.execute(
      """
      ALTER TABLE _kizunasync_capture ADD COLUMN n\(slot);
      ALTER TABLE _kizunasync_capture ADD COLUMN o\(slot);
      ALTER TABLE _kizunasync_displaced ADD COLUMN c\(slot);
      """)
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
        ignore(column, of: table)
        continue
      }
      try database.execute("ALTER TABLE \(layout.quoted) ADD COLUMN \(SQL.name(column))")
      try addColumn(column, to: table, late: late)
      isChanged = true
    }
    guard isChanged else { return }
    try makeTriggers(table, layout.config)
    try reloadLayouts()
  }

  private func ignore(_ column: String, of table: String) {
    guard ignoredColumns.insert("\(table).\(column)").inserted else { return }
    log.warning("store.column_ignored", ["table": .string(table), "column": .string(column)])
  }

  /// Takes note of what kinds the values of a row show, and rewrites stored cells where that changes how they are kept.
  /// - Parameter firm: the row comes from the server. A local write only fills the gap until the server has spoken.
  func learn(_ row: RowMap, table: String, firm: Bool) throws {
    for (name, value) in row {
      guard let column = try layout(table)[name], let seen = CellCodec.kind(of: value) else { continue }
      if let kind = column.kind {
        if column.isFirm ? CellCodec.fits(kind, seen) : !firm { continue }
      }
      // A firm kind that does not fit means values of several kinds: their cells become JSON text.
      let kind = column.isFirm ? .json : seen
      try change(column, of: table, to: kind, firm: firm)
    }
  }

  private func change(_ column: TableLayout.Column, of table: String, to kind: ColumnKind, firm: Bool) throws {
    let layout = try layout(table)
    if let old = column.kind, old != kind, old == .json || kind == .json {
      try applying { try rewriteCells(of: column, layout, from: old, to: kind) }
    }
    if column.isKey, kind == .number {
      // Keys that were written as text before the server showed that they are numbers.
      try applying {
        try database.run(
          "UPDATE OR IGNORE \(layout.quoted) SET \(SQL.name(column.name)) = CAST(\(SQL.name(column.name)) AS INTEGER) "
            + "WHERE typeof(\(SQL.name(column.name))) = 'text'")
      }
    }
    try database.run(
      "UPDATE _kizunasync_kinds SET kind = ?, firm = ? WHERE tbl = ? AND col = ?", .text(kind.rawValue),
      .integer(firm ? 1 : 0), .text(table), .text(column.name))
    try reloadLayout(table)
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
      let cell = CellCodec.encode(CellCodec.decode(row[0], kind: old), kind: new)
      guard cell != row[0] else { continue }
      try database.run("UPDATE \(layout.quoted) SET \(name) = ? WHERE \(layout.whereKey)", [cell] + row.dropFirst())
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

  // MARK: Triggers

  /// Makes the triggers that are missing or whose text is out of date.
  private func makeTriggers(_ table: String, _ config: KizunaSyncTableConfig) throws {
    let columns = try database.map(
      "SELECT col, slot FROM _kizunasync_kinds WHERE tbl = ? ORDER BY slot", [.text(table)]
    ) { CaptureTriggers.Column(name: $0.string(0), slot: $0.int(1)) }
    let wanted = CaptureTriggers(
      table: table, columns: columns, key: config.key, uniqueSets: try uniqueSets(table),
      isSelfReferencing: try cascadesOntoItself(table), refusesWrites: config.syncMode == .pullOnly,
      refusesDeletes: config.softDeleteColumn != nil
    ).triggers()
    let present = Dictionary(
      try database.map(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? AND substr(name, 1, 12) = ?",
        [.text(table), .text(Schema.prefix)]
      ) { ($0.string(0), $0.string(1)) }, uniquingKeysWith: { first, _ in first })
    for name in present.keys where !wanted.contains(where: { $0.name == name }) {
      try database.execute("DROP TRIGGER \(SQL.name(name))")
    }
    for trigger in wanted where present[trigger.name] != trigger.sql {
      if present[trigger.name] != nil { try database.execute("DROP TRIGGER \(SQL.name(trigger.name))") }
      try database.execute(trigger.sql)
    }
  }

  /// The columns of the primary key and of every unique index. A partial index counts as a whole one: more rows are
  /// noted than can be displaced, which is harmless.
  private func uniqueSets(_ table: String) throws -> [CaptureTriggers.UniqueSet] {
    var sets: [CaptureTriggers.UniqueSet] = []
    let indexes = try database.map(
      "SELECT name FROM pragma_index_list(?) WHERE \"unique\" = 1", [.text(table)]
    ) { $0.string(0) }
    for index in indexes {
      let columns = try database.map(
        "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key = 1", [.text(index)]
      ) { ($0.optionalString(0), $0.optionalString(1) ?? "BINARY") }
      guard columns.allSatisfy({ $0.0 != nil }) else {
        throw KizunaSyncError(
          .configInvalid,
          "the table \(table) has a unique index on an expression (\(index)); rows it displaces cannot be captured, so the table cannot be synced"
        )
      }
      sets.append(columns.map { ($0.0 ?? "", $0.1) })
    }
    // An INTEGER PRIMARY KEY is the row id and has no index.
    let primary = try tableColumns(table).filter { $0.primaryKeyPosition > 0 }
      .sorted { $0.primaryKeyPosition < $1.primaryKeyPosition }.map(\.name)
    if !primary.isEmpty, !sets.contains(where: { $0.map(\.column) == primary }) {
      sets.append(primary.map { ($0, "BINARY") })
    }
    return sets
  }

  /// Whether a delete in the table can reach the table again through foreign keys that act.
  private func cascadesOntoItself(_ table: String) throws -> Bool {
    let tables = try database.map("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.string(0) }
    var children: [String: Set<String>] = [:]
    for child in tables {
      let parents = try database.map(
        "SELECT \"table\" FROM pragma_foreign_key_list(?) WHERE on_delete NOT IN ('NO ACTION', 'RESTRICT')",
        [.text(child)]
      ) { $0.string(0).lowercased() }
      for parent in parents { children[parent, default: []].insert(child.lowercased()) }
    }
    var reached: Set<String> = []
    var next = [table.lowercased()]
    while let parent = next.popLast() {
      for child in children[parent] ?? [] where reached.insert(child).inserted { next.append(child) }
    }
    return reached.contains(table.lowercased())
  }

  // MARK: What SQLite says about a table

  private struct DeclaredColumn {
    var name: String
    var declaredType: String
    var primaryKeyPosition: Int

    /// By the rules of SQLite's documentation on type affinity.
    var affinity: String {
      let type = declaredType.uppercased()
      if type.contains("INT") { return "INTEGER" }
      if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") { return "TEXT" }
      if type.isEmpty || type.contains("BLOB") || type == "ANY" { return "NONE" }
      if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") { return "REAL" }
      return "NUMERIC"
    }

    var impliedKind: ColumnKind? {
      switch declaredType.uppercased() {
      case "BOOLEAN", "BOOL": .boolean
      case "JSON", "JSONB": .json
      default: nil
      }
    }
  }

  /// The columns that can be written; generated ones are left out.
  private func tableColumns(_ table: String) throws -> [DeclaredColumn] {
    try database.map("SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden = 0", [.text(table)]) {
      DeclaredColumn(name: $0.string(0), declaredType: $0.string(1), primaryKeyPosition: $0.int(2))
    }
  }
}
