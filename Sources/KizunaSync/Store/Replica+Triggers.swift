import HostKit

/// The capture triggers of the synced tables, and what they must know of a table.
extension Replica {
  /// Makes the triggers that are missing or whose text is out of date.
  func makeTriggers(_ table: String, _ config: KizunaSyncTableConfig) throws {
    let capture = try captureTriggers(table, config, columns: journalColumns(of: table))
    try put(isCaptureOff ? capture.triggersWhileOff() : capture.triggers(), on: table)
  }

  /// Ends capture until the database is opened again, and lets nobody write meanwhile.
  func turnCaptureOff() throws {
    isCaptureOff = true
    try transaction(sync: .full) {
      for layout in layouts.values { try makeTriggers(layout.name, layout.config) }
    }
  }

  func dropTriggers(of table: String) throws {
    try put([], on: table)
  }

  private func put(_ wanted: [CaptureTriggers.Trigger], on table: String) throws {
    // What an app's trigger does must be journalled after the change that made it fire, and the newest fires first.
    let isOlder = try hasNewerTriggers(table)
    var present = try presentTriggers(of: table)
    for name in present.keys where isOlder || !wanted.contains(where: { $0.name == name }) {
      try database.execute("DROP TRIGGER \(SQL.name(name))")
      present[name] = nil
    }
    for trigger in wanted where present[trigger.name] != trigger.sql {
      if present[trigger.name] != nil { try database.execute("DROP TRIGGER \(SQL.name(trigger.name))") }
      try database.execute(trigger.sql)
    }
  }

  /// Whether a unique index was made since the triggers were, so that the rows it displaced went unseen.
  func hasUnseenIndex(_ table: String, _ config: KizunaSyncTableConfig) throws -> Bool {
    let present = try presentTriggers(of: table)
    guard let beforeInsert = present[CaptureTriggers.namePrefix(table: table) + "before_insert"],
      !beforeInsert.contains("refused:")
    else { return false }
    return try captureTriggers(table, config, columns: []).isUnseenIndex(in: beforeInsert)
  }

  private func hasNewerTriggers(_ table: String) throws -> Bool {
    try database.exists(
      """
      SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE AND substr(name, 1, 12) <> ?2
        AND rowid > (SELECT min(rowid) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
          AND substr(name, 1, 12) = ?2)
      """, .text(table), .text(Schema.prefix))
  }

  /// The triggers that together see every write.
  private static let watching: [Substring] = [
    "before_insert", "after_insert", "after_insert_displacing", "before_update", "after_update",
    "after_update_displacing", "after_delete",
  ]
  /// Those of a pull-only table, and of any while capture is off, which let no write happen.
  private static let refusing: [Substring] = ["before_insert", "before_update", "before_delete"]

  /// Whether writes may have gone unseen: the triggers are not there. Which ones there have to be depends on what the
  /// table was configured as until now.
  func lacksTriggers(_ table: String) throws -> Bool { try Self.capture(of: table, in: database) == .lacking }

  enum Capture {
    /// Every change is noted, or refused where none may be made.
    case whole
    /// Every change is refused until capture is turned on.
    case off
    /// Triggers are not there.
    case lacking
  }

  static func capture(of table: String, in database: Database) throws -> Capture {
    let present = try presentTriggers(of: table, in: database)
    let prefix = CaptureTriggers.namePrefix(table: table)
    if watching.allSatisfy({ present[prefix + $0] != nil }) { return .whole }
    let refusals = refusing.compactMap { present[prefix + $0] }.filter { $0.contains("refused") }
    if refusals.count < refusing.count { return .lacking }
    return refusals.allSatisfy { $0.contains(CaptureTriggers.offWords) } ? .off : .whole
  }

  /// The columns as the triggers name them, which are renamed in there too; nil where no trigger names them.
  func journalledColumns(of table: String) throws -> [CaptureTriggers.Column]? {
    let present = try presentTriggers(of: table)
    return present[CaptureTriggers.namePrefix(table: table) + "after_delete"].flatMap(CaptureTriggers.columns)
  }

  func journalColumns(of table: String) throws -> [CaptureTriggers.Column] {
    try database.map("SELECT col, slot FROM _kizunasync_kinds WHERE tbl = ? ORDER BY slot", [.text(table)]) {
      CaptureTriggers.Column(name: $0.string(0), slot: $0.int(1))
    }
  }

  private func captureTriggers(
    _ table: String, _ config: KizunaSyncTableConfig, columns: [CaptureTriggers.Column]
  ) throws -> CaptureTriggers {
    CaptureTriggers(
      table: table, columns: columns, key: config.key, uniqueSets: try uniqueSets(table),
      defaults: try constantDefaults(table), rowID: try rowIDName(table),
      isSelfReferencing: try cascadesOntoItself(table), refusesWrites: config.syncMode == .pullOnly,
      refusesDeletes: config.softDeleteColumn != nil)
  }

  /// By name, with their text.
  private func presentTriggers(of table: String) throws -> [String: String] {
    try Self.presentTriggers(of: table, in: database)
  }

  private static func presentTriggers(of table: String, in database: Database) throws -> [String: String] {
    Dictionary(
      try database.map(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE "
          + "AND substr(name, 1, 12) = ?", [.text(table), .text(Schema.prefix)]
      ) { ($0.string(0), $0.string(1)) }, uniquingKeysWith: { first, _ in first })
  }

  /// A table that is renamed takes its triggers along. They go: it is another table now, and the names are needed.
  func removeStrayTriggers() throws {
    let known = try database.map("SELECT name FROM _kizunasync_tables") { $0.string(0) }
    let triggers = try database.map(
      "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, 12) = ? AND tbl_name <> ?",
      [.text(Schema.prefix), .text(Schema.Table.group.name)]
    ) { (name: $0.string(0), table: $0.string(1)) }
    var renamed: [String: String] = [:]
    for trigger in triggers {
      let table = known.first { $0.lowercased() == trigger.table.lowercased() }
      let former = known.first { Self.isTrigger(trigger.name, of: $0) }
      if let table, former == nil || former == table { continue }
      try database.execute("DROP TRIGGER \(SQL.name(trigger.name))")
      if let former { renamed[former] = trigger.table }
    }
    for (former, table) in renamed.sorted(by: { $0.key < $1.key }) {
      log.warning(
        "store.table_renamed",
        [
          "table": .string(former), "to": .string(table),
          "reason": .string("\(table) is not synced; rename it back, or configure it under this name"),
        ])
    }
  }

  /// What may follow a table's name in the name of a trigger, in any format. One name may begin another: `todos`, `todos_before`.
  private static let triggerSuffixes: Set<Substring> = [
    "before_insert", "after_insert", "after_insert_displacing", "before_update", "after_update",
    "after_update_displacing", "after_update_moving", "before_delete", "after_delete",
  ]

  private static func isTrigger(_ name: String, of table: String) -> Bool {
    let prefix = CaptureTriggers.namePrefix(table: table)
    return name.hasPrefix(prefix) && triggerSuffixes.contains(name.dropFirst(prefix.count))
  }

  /// The columns of the primary key and of every unique index. A partial index counts as a whole one: more rows are
  /// noted than can be displaced, which is harmless.
  func uniqueSets(_ table: String) throws -> [CaptureTriggers.UniqueSet] {
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

  /// What NOT NULL columns take for NULL under `OR REPLACE`, where the declaration says so in a constant.
  private func constantDefaults(_ table: String) throws -> [String: String] {
    let declared = try database.map(
      "SELECT name, dflt_value FROM pragma_table_xinfo(?) WHERE \"notnull\" AND dflt_value IS NOT NULL", [.text(table)]
    ) { ($0.string(0), $0.string(1)) }
    let constant = /[+-]?[0-9.]+([eE][+-]?[0-9]+)?|[xX]?'([^']|'')*'/
    return Dictionary(declared.filter { $0.1.wholeMatch(of: constant) != nil }, uniquingKeysWith: { first, _ in first })
  }

  private func rowIDName(_ table: String) throws -> String? {
    let hasNone = try database.exists(
      "SELECT 1 FROM pragma_table_list(?) WHERE schema = 'main' AND wr = 1", .text(table))
    if hasNone { return nil }
    let columns = Set(
      try database.map("SELECT name FROM pragma_table_xinfo(?)", [.text(table)]) { $0.string(0) }
        .map { $0.lowercased() })
    return ["_rowid_", "rowid", "oid"].first { !columns.contains($0) }
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
}
