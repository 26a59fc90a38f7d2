import HostKit

/// Making, adopting and following the synced tables.
///
/// They are the file's, so any program may drop, rename, replace or alter them. Whatever it did, the next transaction
/// brings bookkeeping and triggers in line, keeps what is queued, and asks for what this file no longer knows.
extension Replica {
  /// How long a table that was dropped under a running client may be away before it is made again: a program that
  /// replaces it in two transactions must not find its name taken.
  static let grace: UInt64 = .seconds(2)

  /// Brings everything in line with the schema as it is now.
  /// - Throws: at the start `CONFIG_INVALID` when a table does not fit its configuration (later such a table is set
  ///   aside), `STORE_BUSY` while one is being replaced.
  func followSchema() throws {
    do {
      try repairBookkeeping()
      try dropOldGroupTriggers()
      try database.execute(Schema.groupTriggers)
      try removeStrayTriggers()
      var problems: [String: String] = [:]
      for table in settings.tables.keys.sorted() { problems[table] = try adoptOrSayWhyNot(table) }
      try reloadLayouts()
      try decideWhatIsSetAside(problems)
      try noteHeldWrites()
      isParkedRetryDue = true
      schemaProblem = nil
      if try !database.meta(.schemaProblem).isNull { try database.setMeta(.schemaProblem, .null) }
    } catch let error as KizunaSyncError {
      schemaProblem = error.message
      throw error
    }
  }

  /// Those of an earlier release do not tell where a group begins.
  private func dropOldGroupTriggers() throws {
    let isOld = try database.exists(
      "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = '_kizunasync_group_opens' "
        + "AND instr(sql, '_kizunasync_capture') = 0")
    if isOld { try database.execute("DROP TRIGGER _kizunasync_group_opens") }
  }

  /// `followSchema` in a transaction of its own, if another program changed the schema.
  /// - Returns: whether it did.
  @discardableResult
  func followSchemaIfChanged() throws -> Bool {
    if isRetryDue { schemaCookie = -1 }
    guard try readSchemaCookie() != schemaCookie else { return false }
    try bareTransaction(sync: .normal, foreignKeys: false) {}
    return true
  }

  /// Logs why the tables cannot be followed and leaves a word of it for `status`, once. Outside a transaction.
  func reportSchemaProblem() {
    guard !isStarting, let problem = schemaProblem, problem != reportedSchemaProblem else { return }
    reportedSchemaProblem = problem
    log.error("store.schema_problem", ["reason": .string(problem)])
    try? database.transaction { try database.setMeta(.schemaProblem, .text(problem)) }
  }

  // MARK: Adoption

  /// - Returns: why a running client must set the table aside.
  /// - Throws: `CONFIG_INVALID` for the same reasons at the start: then somebody is there to put it right.
  private func adoptOrSayWhyNot(_ table: String) throws -> String? {
    if isStarting {
      try adopt(table)
      return nil
    }
    do {
      try database.savepoint { try adopt(table) }
      return nil
    } catch let error as KizunaSyncError where error.code == ErrorCode.configInvalid.rawValue {
      return error.message
    }
  }

  /// Makes the table if the file lacks it, or takes the app's own; then sees to its columns and triggers.
  private func adopt(_ table: String) throws {
    guard let config = settings.tables[table] else { return }
    let isKnown = try database.exists("SELECT 1 FROM _kizunasync_tables WHERE name = ?", .text(table))
    var isMade = false
    // SQLite compares names of tables without case.
    let type = try database.value(
      "SELECT CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual table' ELSE type END FROM sqlite_schema "
        + "WHERE name = ? COLLATE NOCASE AND type <> 'trigger'",
      .text(table))?.text
    switch type {
    case nil where isKnown:
      try waitForReturn(of: table)
      try makeAgain(table, config)
      isMade = true
    case nil:
      try makeTable(table, config, columns: [])
      isMade = true
    case "table":
      if !isKnown { try recordTable(table, managed: false) }
    default:
      throw KizunaSyncError(.configInvalid, "\(table) is a \(type ?? "") in the database; only a table can be synced")
    }
    missingSince[table] = nil
    try checkKey(table, config)
    try follow(table, config, isMade: isMade)
  }

  /// Brings bookkeeping, triggers and journal in line with the table's columns.
  private func follow(_ table: String, _ config: KizunaSyncTableConfig, isMade: Bool) throws {
    let isGap = try !isMade && lacksTriggers(table)
    if isGap { try recogniseOwner(of: table) }
    let isIndexNew = try !isMade && !isGap && hasUnseenIndex(table, config)
    // Triggers that name no column do not tell either what was renamed, and nothing was written meanwhile.
    let isBlind = try !isMade && journalledColumns(of: table) == nil && isDeclaredOtherwise(table)
    let change = try followColumns(table, config)
    try makeTriggers(table, config)
    try learnDeclaredKinds(table, config)
    if !change.came.isEmpty { try journalUnseenCells(table, change.came) }
    try noteDeclaration(of: table)
    guard !change.isFirst else { return }
    if isGap || isIndexNew {
      // Whoever replaced the table, or dropped its triggers, may have written to it unseen; and what a unique index
      // displaced is told by triggers that know it.
      let cause =
        isGap
        ? "its triggers were not those of this release: it was replaced, they were dropped, or another release made them"
        : "it has a new unique index, which may have displaced rows"
      log.warning(
        "store.writes_unseen",
        [
          "table": .string(table),
          "reason": .string("\(cause); its rows are read again from the server, and what differs is queued"),
        ])
      // Of a table that was set aside it is not known which side is the older one.
      let keep: Rereads.Keep = try database.tablesSetAside()[table] == nil ? .changes : .rows
      try changeRereads {
        $0.ask(table, keep: config.syncMode == .readWrite ? keep : .nothing, fresh: Set(change.came))
      }
    } else if try isBlind || change.isMixed || !change.gone.isEmpty || (!change.came.isEmpty && !isManaged(table)) {
      try changeRereads { $0.ask(table, keep: .nothing, fresh: Set(change.came)) }
    }
  }

  func isManaged(_ table: String) throws -> Bool {
    try database.value("SELECT managed FROM _kizunasync_tables WHERE name = ?", .text(table)) == .integer(1)
  }

  func makeTable(_ table: String, _ config: KizunaSyncTableConfig, columns known: [String]) throws {
    // The shape of a version 4 uuid, so that an insert by plain SQL may leave the id out.
    let uuid =
      "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || "
      + "substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
    var columns = config.key.map { "\(SQL.name($0)) NOT NULL" }
    if config.key == ["id"] { columns[0] += " DEFAULT (\(uuid))" }
    // The bucket column too: SQL must be able to name it, and it is filled in where a write leaves it out.
    let named = Set(config.columns.keys).union([config.bucketColumn, config.softDeleteColumn].compactMap(\.self))
    columns += (known + named.subtracting(known).sorted()).filter { !config.key.contains($0) }.map(SQL.name)
    try refuseWidth(columns.count, of: table)
    try database.execute(
      "CREATE TABLE \(SQL.name(table))(\(columns.joined(separator: ", ")), PRIMARY KEY (\(SQL.names(config.key))))")
    try recordTable(table, managed: true)
  }

  func recordTable(_ table: String, managed: Bool) throws {
    try database.run(
      "INSERT OR REPLACE INTO _kizunasync_tables(name, managed, slots) VALUES (?, ?, coalesce("
        + "(SELECT slots FROM _kizunasync_tables WHERE name = ?), 0))", .text(table), .integer(managed ? 1 : 0),
      .text(table))
  }

  // MARK: Tables that were dropped

  /// - Throws: `STORE_BUSY` while the table may still come back by itself.
  private func waitForReturn(of table: String) throws {
    guard !isStarting else { return }
    let since = missingSince[table] ?? clock.now
    missingSince[table] = since
    guard clock.now < since + Self.grace else { return }
    throw KizunaSyncError(
      .storeBusy,
      "the synced table \(table) was dropped by another program; unless it is back within 2 s it is made again and its rows are read again from the server"
    )
  }

  /// Makes a table that was dropped again, an app's by its own declaration. Its columns keep their places in the journal,
  /// so that nothing queued is lost; its rows come from the server again.
  private func makeAgain(_ table: String, _ config: KizunaSyncTableConfig) throws {
    if try !remakeDeclared(table) {
      let columns = try database.map(
        "SELECT col FROM _kizunasync_kinds WHERE tbl = ? ORDER BY slot", [.text(table)]
      ) { $0.string(0) }
      try makeTable(table, config, columns: columns)
    }
    try database.run("DELETE FROM _kizunasync_absent WHERE tbl = ?", .text(table))
    try database.run("DELETE FROM _kizunasync_parked WHERE tbl = ?", .text(table))
    try changeRereads { $0.startOver(table) }
    tablesToFill.insert(table)
    log.warning(
      "store.table_made_again",
      [
        "table": .string(table),
        "reason": "it was dropped; its rows are read again from the server, and queued writes are kept",
      ])
  }

  /// Shows what queued writes make of the rows of tables that were made again, without waiting for the server.
  func fillFromQueue() throws {
    guard !tablesToFill.isEmpty else { return }
    try transaction(applying: true) {
      for table in tablesToFill where layouts[table] != nil {
        let keys = try database.map("SELECT pk FROM _kizunasync_image WHERE tbl = ?", [.text(table)]) { $0.string(0) }
        for pk in keys { try settle(table, pk: pk) }
      }
    }
    tablesToFill = []
  }
}
