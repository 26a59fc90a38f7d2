import HostKit

/// The SQLite replica: synced tables, capture journal, outbox, images and staged pages, and the transactions over them.
///
/// Not thread-safe and never suspended: the engine's actor holds it on a thread of its own. Everything it does is one of
/// the transactions named T0 to T6 in the documentation; the network is never awaited inside one.
final class Replica {
  /// What the rest of the client tells the replica about itself.
  struct Settings {
    var path: String?
    var clientID: String
    var tables: [String: KizunaSyncTableConfig]
    var localOnlyColumns: Set<String> = []
  }

  /// The answer belongs to a state that is gone: identity, buckets or the whole replica changed meanwhile.
  struct StaleAnswer: Error {}

  let settings: Settings
  let database: Database
  let clock: any HostClock
  let log: HostLog
  /// The state of the table schemas the layouts were made from.
  var schemaCookie: Int64 = -1
  /// From `turnCaptureOff` on, for as long as this replica is open.
  var isCaptureOff = false
  var layouts: [String: TableLayout] = [:]
  /// The widest journal row there is.
  var captureWidth = 0
  /// `ctl.applying` inside the current transaction.
  var isApplying = false
  /// Journal rows harvested so far that no library write left: changes by plain SQL.
  var foreignRows = 0
  /// A token was set, so the owner is known now or never will be.
  var isSignedIn = false
  /// Events of writes that the harvest refused, until the engine raises them.
  var refusals: [KizunaSyncEngineEvent] = []
  /// Rows of an app's table whose foreign key leads nowhere, to report changes only.
  var reportedForeignKeys: [String: Int] = [:]
  /// Columns of the server that an app's table lacks, to report each once.
  var ignoredColumns: Set<String> = []
  /// Columns that held a value of another kind than the configuration declares, to report each once.
  var mismatchedColumns: Set<String> = []
  /// Until the first look at the tables is done nobody can be in the middle of replacing one.
  private(set) var isStarting = true
  /// Since when tables that were dropped are missed, on `clock`.
  var missingSince: [String: UInt64] = [:]
  /// Tables that were made again and do not show queued writes yet.
  var tablesToFill: Set<String> = []
  /// Why nothing may be written any more.
  var lost: KizunaSyncError?
  /// Why the tables could not be followed, and what of it is in the log.
  var schemaProblem: String?
  var reportedSchemaProblem: String?
  /// Tables that cannot take rows as they are, see `SetAside`, what of it is in the log, and how often in a row a table
  /// undid a transaction.
  var setAside: [String: SetAside] = [:]
  var reportedAside: [String: String] = [:]
  var failures: [String: Int] = [:]
  /// Of a copy: the last journal number of which its original may have sent what came of it.
  var sentPerhapsThrough: Int64?
  /// Another constraint may have room for rows that are parked.
  var isParkedRetryDue = true

  /// Opens or creates the file, its bookkeeping and its tables.
  /// - Throws: `SQLiteError`, or `KizunaSyncError` with `CONFIG_INVALID` when a table does not fit its configuration.
  init(_ settings: Settings, clock: any HostClock, log: HostLog) throws {
    self.settings = settings
    self.clock = clock
    self.log = log
    database = try Database(DatabaseConfiguration(path: settings.path, role: .writer))
    try Schema.prepare(database)
    try bareTransaction(sync: .normal, foreignKeys: false) {
      if try database.meta(.journal).isNull { try database.setMeta(.journal, .text(RandomUUID.make())) }
      if try database.meta(.clientID).isNull { try database.setMeta(.clientID, .text(settings.clientID)) }
      // A crash cannot leave this set, but a copy of the file taken without SQLite can.
      try database.run("UPDATE _kizunasync_ctl SET applying = 0 WHERE applying <> 0")
      try unmark(.applying)
    }
    isStarting = false
  }

  func close() {
    database.close()
  }

  // MARK: Transactions

  /// One gateway transaction: generation check, T0, body, commit.
  /// - Parameters:
  ///   - sync: `.full` for what only this host knows.
  ///   - generation: the generation the caller's knowledge belongs to; nil when it cannot be stale.
  ///   - applying: silences the capture triggers for the body.
  func transaction<Result>(
    sync: Database.Sync = .normal, generation: Int64? = nil, applying: Bool = false, _ body: () throws -> Result
  ) throws -> Result {
    try followSchemaIfChanged()
    try harvestBacklog()
    return try bareTransaction(sync: sync, foreignKeys: false) {
      if let generation, try generation != self.generation() { throw StaleAnswer() }
      try harvest()
      return applying ? try self.applying(body) : try body()
    }
  }

  /// `BEGIN IMMEDIATE` … `COMMIT` with fresh layouts, without T0.
  ///
  /// A table that undoes the transaction is set aside, and everything is done again without it.
  /// - Parameter isRepeatable: whether `body` may run again; otherwise the caller learns of the failure.
  func bareTransaction<Result>(
    sync: Database.Sync, foreignKeys: Bool, isRepeatable: Bool = true, _ body: () throws -> Result
  ) throws -> Result {
    for _ in 0...settings.tables.count {
      do {
        return try oneTransaction(sync: sync, foreignKeys: foreignKeys, body)
      } catch let failure as TableFailure {
        setAside(failure)
        if !isRepeatable { throw failure.error }
      }
    }
    throw KizunaSyncError(
      .store, "the triggers of the synced tables undo every transaction; let them use ABORT instead of ROLLBACK")
  }

  private func oneTransaction<Result>(
    sync: Database.Sync, foreignKeys: Bool, _ body: () throws -> Result
  ) throws -> Result {
    if let lost { throw lost }
    let known = refusals.count
    do {
      return try database.transaction(sync: sync, foreignKeys: foreignKeys) {
        if try readSchemaCookie() != schemaCookie { try followSchema() }
        return try body()
      }
    } catch {
      isApplying = false
      refusals.removeLast(refusals.count - known)
      try? forgetUndone()
      reportSchemaProblem()
      throw error
    }
  }

  /// Runs `body` while the capture triggers are silent.
  func applying<Result>(_ body: () throws -> Result) throws -> Result {
    if isApplying { return try body() }
    // A note left by an ignored insert must not outlive what is applied now.
    // (With a condition, because without one an empty table is cleared, which writes a page of its own.)
    try database.run("DELETE FROM _kizunasync_displaced WHERE tbl IS NOT NULL")
    try database.run("UPDATE _kizunasync_ctl SET applying = 1")
    try database.run(
      "INSERT INTO _kizunasync_displaced(base_seq) VALUES (?)", .integer(Schema.Mark.applying.rawValue))
    isApplying = true
    let result = try body()
    try database.run("UPDATE _kizunasync_ctl SET applying = 0")
    try unmark(.applying)
    isApplying = false
    return result
  }

  private func unmark(_ mark: Schema.Mark) throws {
    try database.run("DELETE FROM _kizunasync_displaced WHERE base_seq = ?", .integer(mark.rawValue))
  }

  func generation() throws -> Int64 {
    try database.value("SELECT generation FROM _kizunasync_ctl")?.integer ?? 0
  }

  func raiseGeneration() throws {
    try database.run("UPDATE _kizunasync_ctl SET generation = generation + 1")
  }

  func readSchemaCookie() throws -> Int64 {
    try database.value("PRAGMA schema_version")?.integer ?? 0
  }

  // MARK: Layouts

  /// - Throws: `UNKNOWN_TABLE`.
  func layout(_ table: String) throws -> TableLayout {
    guard let layout = layouts[table] else {
      throw KizunaSyncError(.unknownTable, "the table \(table) is not configured")
    }
    return layout
  }

  /// Columns and kinds that were learned are gone with what was rolled back.
  func forgetUndone() throws {
    schemaCookie = -1
    try reloadLayouts()
    // The next transaction looks at the tables themselves.
    schemaCookie = -1
  }

  func reloadLayouts() throws {
    layouts = [:]
    for table in settings.tables.keys { try reloadLayout(table) }
    captureWidth = try journalWidth()
    schemaCookie = try readSchemaCookie()
  }

  /// How many columns the widest journal row has values for.
  func journalWidth() throws -> Int {
    try database.map("SELECT name FROM pragma_table_info('_kizunasync_capture')") { $0.string(0) }
      .compactMap { $0.hasPrefix("n") ? Int($0.dropFirst()) : nil }.max().map { $0 + 1 } ?? 0
  }

  func reloadLayout(_ table: String) throws {
    guard let config = settings.tables[table] else { return }
    layouts[table] = try Self.layout(
      table, config: config, localOnly: settings.localOnlyColumns, in: database)
  }

  /// Reads a layout; also used by readers on other connections.
  static func layout(
    _ table: String, config: KizunaSyncTableConfig, localOnly: Set<String>, in database: Database
  ) throws -> TableLayout {
    let isManaged =
      try database.value("SELECT managed FROM _kizunasync_tables WHERE name = ?", .text(table)) == .integer(1)
    let columns = try database.map(
      "SELECT col, slot, kind, firm, late FROM _kizunasync_kinds WHERE tbl = ? ORDER BY slot", [.text(table)]
    ) { row in
      TableLayout.Column(
        name: row.string(0), slot: row.int(1), kind: row.optionalString(2).flatMap(ColumnKind.init(rawValue:)),
        isFirm: row.int(3) != 0, isLate: row.int(4) != 0, isKey: config.key.contains(row.string(0)),
        isLocalOnly: localOnly.contains(row.string(0)))
    }
    let hasAppTriggers = try database.exists(
      "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE AND substr(name, 1, 12) <> ?",
      .text(table), .text(Schema.prefix))
    guard !isManaged else {
      return TableLayout(name: table, config: config, isManaged: true, hasAppTriggers: hasAppTriggers, columns: columns)
    }
    let types = Dictionary(
      try database.map("SELECT name, type FROM pragma_table_info(?)", [.text(table)]) { ($0.string(0), $0.string(1)) },
      uniquingKeysWith: { first, _ in first })
    let declared = try columns.map { column in
      var column = column
      let type = types[column.name] ?? ""
      // Only for this type it makes a difference.
      let isStrict = try type.uppercased() == "ANY" && database.isStrict(table)
      column.declared = ColumnAffinity(declaredType: type, isStrict: isStrict)
      if column.isKey { column.affinity = column.declared }
      return column
    }
    return TableLayout(name: table, config: config, isManaged: false, hasAppTriggers: hasAppTriggers, columns: declared)
  }
}
