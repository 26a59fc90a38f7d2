import CSQLite
import Glibc

/// One SQLite connection with its statement cache. Not thread-safe: an actor on a thread of its own holds it.
final class Database {
  /// How a transaction may end on its own account.
  enum Sync: String {
    /// Survives a crash of the process; a power cut may undo the newest commits.
    case normal = "NORMAL"
    /// On disk when the commit returns.
    case full = "FULL"
  }

  let configuration: DatabaseConfiguration
  private let handle: OpaquePointer
  private var statements: [String: Statement] = [:]
  /// Queries of an app are of any number; the cache is emptied when it holds so many.
  private static let cacheCapacity = 300
  /// Pages in the write-ahead log after the last commit of this connection, written by SQLite's hook.
  private let logPages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
  private var isClosed = false
  private var synchronous = Sync.normal
  private var foreignKeys = false

  /// - Throws: `SQLiteError`.
  init(_ configuration: DatabaseConfiguration) throws {
    var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    switch configuration.role {
    case .writer: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    case .reader, .visitor: flags |= SQLITE_OPEN_READWRITE
    }
    if configuration.isImmutable {
      flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
    }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(configuration.name, &opened, flags, nil)
    guard code == SQLITE_OK, let handle = opened else {
      let message = String(cString: opened.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
      let reason = opened.map { sqlite3_system_errno($0) } ?? 0
      sqlite3_close_v2(opened)
      throw SQLiteError(code: code, message: message, sql: nil, systemError: reason)
    }
    self.handle = handle
    self.configuration = configuration
    logPages.initialize(to: 0)
    sqlite3_busy_timeout(handle, configuration.busyTimeoutMilliseconds)
    if configuration.isAlone {
      _ = kd_sqlite_db_config_int(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil)
    }
    do {
      for pragma in configuration.pragmas { try execute(pragma) }
      // Opening is lazy: the first read tells whether the file is a database at all.
      try execute("SELECT 1 FROM sqlite_schema LIMIT 1")
      if configuration.role == .writer, configuration.path != nil { try watchLog() }
    } catch {
      close()
      throw error
    }
  }

  /// Opens a database for somebody who only looks, and may not be allowed more.
  ///
  /// SQLite wants to write beside a database even to read it. Where it cannot, the file alone is read, if nothing else
  /// belongs to it: a log that is not empty holds what the file lacks. On a full disk such a log can still be read by
  /// somebody who locks everybody else out meanwhile, because its index is then kept in memory.
  static func observing(_ path: String) throws -> Database {
    do {
      return try Database(DatabaseConfiguration(path: path, role: .reader))
    } catch let error as SQLiteError where error.primaryCode == SQLITE_CANTOPEN || error.primaryCode == SQLITE_READONLY
    {
      guard isLogEmpty(path) else { throw error }
      return try Database(DatabaseConfiguration(path: path, role: .reader, isImmutable: true))
    } catch let error as SQLiteError where error.isOfSharedMemory {
      if isLogEmpty(path) { return try Database(DatabaseConfiguration(path: path, role: .reader, isImmutable: true)) }
      do { return try Database(DatabaseConfiguration(path: path, role: .reader, isAlone: true)) } catch is SQLiteError {
        throw error
      }
    }
  }

  private static func isLogEmpty(_ path: String) -> Bool {
    var log = stat()
    return stat(DatabaseFiles(path).writeAheadLog, &log) != 0 || log.st_size == 0
  }

  deinit {
    close()
    logPages.deallocate()
  }

  /// Idempotent. No statement may be used afterwards.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    statements = [:]
    // Waits for statements that somebody still holds.
    sqlite3_close_v2(handle)
  }

  func lastError(_ sql: String?) -> SQLiteError {
    SQLiteError(
      code: sqlite3_extended_errcode(handle), message: String(cString: sqlite3_errmsg(handle)), sql: sql,
      systemError: sqlite3_system_errno(handle))
  }

  // MARK: Statements

  /// A prepared statement from the cache, reset and ready to bind. One that is being stepped is never handed out twice.
  func statement(_ sql: String) throws -> Statement {
    if let cached = statements[sql], !cached.isBusy { return cached }
    let fresh = try prepare(sql)
    if statements.count >= Self.cacheCapacity { statements = [:] }
    statements[sql] = fresh
    return fresh
  }

  private func prepare(_ sql: String) throws -> Statement {
    var prepared: OpaquePointer?
    guard sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil) == SQLITE_OK,
      let prepared
    else { throw lastError(sql) }
    return Statement(self, handle: prepared, sql: sql)
  }

  /// Whether SQLite can compile a statement as the schema is now.
  func compile(_ sql: String) throws {
    _ = try prepare(sql)
  }

  /// The collation by which a column compares where a statement names none.
  func collation(of column: String, in table: String) throws -> String {
    var name: UnsafePointer<CChar>?
    guard sqlite3_table_column_metadata(handle, "main", table, column, nil, &name, nil, nil, nil) == SQLITE_OK else {
      throw lastError(nil)
    }
    return name.map { String(cString: $0) } ?? "BINARY"
  }

  // MARK: The write-ahead log

  /// Pages after which the log is copied into the database, SQLite's own default.
  private static let checkpointPages: Int32 = 1000

  /// Takes checkpoints out of the commits that happen to fill the log: there they would cost the caller an fsync or two.
  private func watchLog() throws {
    guard try value("PRAGMA journal_mode")?.text == "wal" else {
      throw SQLiteError(
        code: SQLITE_CANTOPEN, message: "the file system does not support the write-ahead log", sql: nil)
    }
    sqlite3_wal_hook(
      handle,
      { pages, _, _, count in
        // The pointer given below.
        pages!.assumingMemoryBound(to: Int32.self).pointee = count
        return SQLITE_OK
      }, logPages)
  }

  /// Copies a long log into the database. Called when nobody waits; other programs' readers are not disturbed.
  func checkpointIfLong() {
    guard logPages.pointee >= Self.checkpointPages, !isInTransaction else { return }
    logPages.pointee = 0
    sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
  }

  /// Copies the whole log into the database and empties it, as far as other programs' readers allow. Also works when the
  /// files have lost their names.
  func emptyLog() {
    guard !isInTransaction else { return }
    sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
  }

  /// Whether the file that is open no longer has the name it was opened by.
  var hasMoved: Bool {
    var moved: Int32 = 0
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
    return moved != 0
  }

  /// Whether the file that is open is no more what it was: it does not begin as a database with a write-ahead log does,
  /// which nobody can change while it is open. (SQLite file format, §1.3.3.)
  var isOverwritten: Bool {
    var head = [UInt8](repeating: 0, count: 20)
    return kd_sqlite_read_head(handle, &head, Int32(head.count)) == SQLITE_OK && head[18...19] != [2, 2]
  }

  // MARK: Running

  /// Runs a script of several statements without arguments.
  func execute(_ script: String) throws {
    guard sqlite3_exec(handle, script, nil, nil, nil) == SQLITE_OK else { throw lastError(script) }
  }

  /// Runs one statement to its end.
  func run(_ sql: String, _ arguments: SQLiteValue...) throws {
    try run(sql, arguments)
  }

  func run(_ sql: String, _ arguments: [SQLiteValue]) throws {
    let statement = try statement(sql)
    statement.bind(arguments)
    try statement.run()
  }

  /// Calls `body` for each row.
  func forEachRow(_ sql: String, _ arguments: [SQLiteValue] = [], _ body: (Statement) throws -> Void) throws {
    let statement = try statement(sql)
    statement.bind(arguments)
    defer { statement.reset() }
    while try statement.step() { try body(statement) }
  }

  /// Calls `body` for each row until it returns false.
  func forEachHead(_ sql: String, _ arguments: [SQLiteValue] = [], _ body: (Statement) throws -> Bool) throws {
    let statement = try statement(sql)
    statement.bind(arguments)
    defer { statement.reset() }
    while try statement.step() {
      guard try body(statement) else { return }
    }
  }

  /// Calls `body` for each row of a statement that is not worth keeping, until it returns false.
  func forEachHead(ofOnce sql: String, _ arguments: [SQLiteValue], _ body: (Statement) throws -> Bool) throws {
    let statement = try prepare(sql)
    statement.bind(arguments)
    while try statement.step() {
      guard try body(statement) else { return }
    }
  }

  func map<Element>(
    _ sql: String, _ arguments: [SQLiteValue] = [], _ transform: (Statement) throws -> Element
  ) throws -> [Element] {
    var result: [Element] = []
    try forEachRow(sql, arguments) { result.append(try transform($0)) }
    return result
  }

  /// The first row through `transform`, or nil.
  func first<Result>(
    _ sql: String, _ arguments: [SQLiteValue] = [], _ transform: (Statement) throws -> Result
  ) throws -> Result? {
    let statement = try statement(sql)
    statement.bind(arguments)
    defer { statement.reset() }
    return try statement.step() ? transform(statement) : nil
  }

  /// The first cell of the first row.
  func value(_ sql: String, _ arguments: SQLiteValue...) throws -> SQLiteValue? {
    try first(sql, arguments) { $0.value(0) }
  }

  func exists(_ sql: String, _ arguments: SQLiteValue...) throws -> Bool {
    try first(sql, arguments) { _ in true } ?? false
  }

  /// Rows changed by the last statement.
  var changes: Int { Int(sqlite3_changes64(handle)) }

  /// Whether a statement of this connection is in the middle of its rows. No table can be dropped then.
  var isReading: Bool {
    var statement = sqlite3_next_stmt(handle, nil)
    while let current = statement {
      if sqlite3_stmt_busy(current) != 0 { return true }
      statement = sqlite3_next_stmt(handle, current)
    }
    return false
  }

  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  // MARK: Transactions

  /// Runs `body` between `BEGIN IMMEDIATE` and `COMMIT`; an error rolls everything back.
  ///
  /// IMMEDIATE, because a reader that upgrades to a writer fails with `SQLITE_BUSY_SNAPSHOT` and no timeout helps.
  /// - Parameters:
  ///   - sync: how durable the commit is when it returns.
  ///   - foreignKeys: whether foreign keys are enforced and cascade. It cannot change inside a transaction.
  func transaction<Result>(
    sync: Sync = .normal, foreignKeys: Bool = false, _ body: () throws -> Result
  ) throws -> Result {
    if sync != synchronous {
      try execute("PRAGMA synchronous = \(sync.rawValue)")
      synchronous = sync
    }
    if foreignKeys != self.foreignKeys {
      try execute("PRAGMA foreign_keys = \(foreignKeys ? "ON" : "OFF")")
      self.foreignKeys = foreignKeys
    }
    try run("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try run("COMMIT")
      return result
    } catch {
      // Some errors (disk full, for one) have already ended the transaction.
      if isInTransaction { try? run("ROLLBACK") }
      throw error
    }
  }

  /// Runs `body` as a unit inside the current transaction; an error undoes it alone.
  func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
    try run("SAVEPOINT kizuna")
    do {
      let result = try body()
      try run("RELEASE kizuna")
      return result
    } catch {
      if isInTransaction {
        try? run("ROLLBACK TO kizuna")
        try? run("RELEASE kizuna")
      }
      throw error
    }
  }

  /// Reads that all see one state of the database.
  func snapshot<Result>(_ body: () throws -> Result) throws -> Result {
    if isInTransaction { return try body() }
    try run("BEGIN")
    defer { try? run("COMMIT") }
    return try body()
  }
}
