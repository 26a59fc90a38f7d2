import Glibc
import HostKit

/// The state of a replica as its file tells it: for people and monitoring, also while a client is at work.
public struct KizunaSyncReplicaStatus: Sendable, Hashable {
  /// The write at the head of the queue.
  public struct OldestWrite: Sendable, Hashable {
    public let table: String
    /// When it was made, milliseconds since 1970.
    public let at: Int64
    /// How often it was sent without a verdict.
    public let attempts: Int
    /// What the last attempt ended with.
    public let lastError: String?
  }

  /// The durable pull cursor; `0` before the first pull is complete.
  public let cursor: String
  public let clientID: String?
  /// Writes that the server has not decided: queued, sent, and captured from SQL but not yet queued.
  public let outboxDepth: Int
  /// Writes, by table, that wait until their table is configured again: it was not for the last client. They are not part
  /// of `outboxDepth`.
  public internal(set) var heldWrites: [String: Int] = [:]
  public let oldestWrite: OldestWrite?
  /// Entries of the two journals that nobody has dismissed.
  public let rejections: Int
  public let overwrites: Int
  /// Rows of the server that a constraint of this database refuses.
  public let parkedRows: Int
  /// Why sync is blocked, if it is: `reset_required` or `identity_changed`.
  public let softBlock: String?
  /// When a run last ended well, milliseconds since 1970.
  public let lastSyncAt: Int64?
  /// Whether that is the very time. Clients without a gateway note it once a minute, so it may have been up to a minute
  /// later.
  public let isLastSyncExact: Bool
  /// When everything was last compared with what the server shows, milliseconds since 1970; see
  /// ``KizunaSyncClient/sweep()``.
  public let lastSweepAt: Int64?
  /// Rows that the server does not show any more and that were kept then, because of changes it had not decided.
  public let hiddenRowsKept: Int
  /// By how many seconds the host's clock was ahead of the server's when that was last noticed; nil while they agree
  /// within five.
  public let clockOffset: Int64?
  /// Why the last run of a gateway failed; nil after one that ended well, and for clients without a gateway.
  public let lastError: LastError?
  /// The tables that are synced, with their rows.
  public let rows: [String: Int]
  /// Synced tables that somebody dropped. The next run or sync makes them again and reads their rows from the server.
  public let missingTables: [String]
  /// Synced tables whose rows the next run reads from the server again, because the file no longer knows them all.
  public let tablesToRead: [String]
  /// When the file was last found to be a copy or a backup that was put back, and went on as a client of its own,
  /// milliseconds since 1970; nil when it never was.
  public let copiedAt: Int64?
  /// Columns of the server, as `table.column`, that an app's table lacks and that are left out for it.
  public let ignoredColumns: [String]
  /// Why the tables cannot be synced as they are now; nil when they can.
  public let problem: String?
  /// Synced tables that cannot take rows as they are now, with the reason and the remedy. The others go on, and these are
  /// read again from the server when the cause is gone.
  public let tablesSetAside: [String: String]
  /// Synced tables whose capture is turned off: no write to them is possible until it is turned on.
  public internal(set) var captureOff: [String] = []
  /// Synced tables that lack triggers of ours, so that changes go unseen. The next run or sync makes them again, reads the
  /// tables from the server and queues what differs.
  public internal(set) var uncaptured: [String] = []
  /// Who synchronises the file now; nil when nobody does.
  public let holder: Holder?
  /// How the doorbell of that process stands; nil when it has none.
  public internal(set) var doorbell: Doorbell?

  /// The state of a gateway's doorbell.
  public struct Doorbell: Sendable, Hashable {
    /// `ready`, which means that every ring is heard; otherwise a word for what it is at: `disconnected`, `connecting`,
    /// `joining`, `denied`, `backing_off`, `awaiting_credentials`, `suspended` or `stopped`.
    public let state: String
    /// Why it is not ready, where that is known; one sentence without tokens, keys and full addresses.
    public let reason: String?
    /// Milliseconds since 1970.
    public let since: Int64
  }

  /// Why a run failed.
  public struct LastError: Sendable, Hashable {
    /// A code of the catalogue.
    public let code: String
    /// One sentence without tokens, keys, full addresses and row values.
    public let message: String
    /// Milliseconds since 1970.
    public let at: Int64
  }

  /// Who synchronises a database file.
  public struct Holder: Sendable, Hashable {
    /// Nil while it is not known yet.
    public let processID: Int32?
  }

  /// Who synchronises a database file now; nil when nobody does. Takes no lock.
  public static func holder(ofDatabase path: String) -> Holder? {
    DatabaseLock.holder(ofDatabase: path).map { Holder(processID: $0.processID) }
  }

  /// Whether an error of opening a client says that somebody else synchronises the file: the code alone does not tell, and
  /// who it was may have ended since.
  package static func isHeld(_ error: KizunaSyncError) -> Bool {
    error.code == ErrorCode.storeUnavailable.rawValue && error.message.contains(DatabaseLockError.heldWords)
  }

  /// Calls `body` once when nobody synchronises the file any more, at once when nobody does. Costs a thread until then.
  package static func whenReleased(database path: String, _ body: @escaping @Sendable () -> Void) {
    HostThread.detach(name: "kizuna-release") {
      DatabaseLock.waitForRelease(ofDatabase: path)
      body()
    }
  }

  /// Reads the state of one database file. Takes no lock and changes nothing; permission to read is enough, unless a
  /// client that ended badly left work in the log.
  ///
  /// It blocks while it reads; call it on a thread that may wait.
  ///
  /// - Throws: `KizunaSyncError` with `STORE_UNAVAILABLE` when the file is missing, is no database or no replica, and
  ///   `STORE` codes for what else SQLite says.
  public static func read(databasePath path: String) throws -> KizunaSyncReplicaStatus {
    try reading(path) { database in
      try read(database, holder: holder(ofDatabase: path), record: RunRecordFile.read(ofDatabase: path))
    }
  }

  /// Reads a replica's file in one snapshot.
  static func reading<Result>(_ path: String, _ body: (Database) throws -> Result) throws -> Result {
    if let problem = DatabaseFiles.problem(withFile: path) { throw KizunaSyncError(.storeUnavailable, problem) }
    guard access(path, F_OK) == 0 else {
      throw KizunaSyncError(.storeUnavailable, "there is no database \(path) yet; the first run or sync makes it")
    }
    return try StoreFailure.translating(path: path) {
      let database = try Database.observing(path)
      defer { database.close() }
      return try database.snapshot {
        try checkBookkeeping(database, path)
        return try body(database)
      }
    }
  }

  private static func checkBookkeeping(_ database: Database, _ path: String) throws {
    try Schema.refuseStrangers(in: database)
    let missing = try Schema.missing(in: database)
    guard missing.count < Schema.Table.allCases.count else {
      throw KizunaSyncError(
        .storeUnavailable, "\(path) is an SQLite database, but no replica yet; the first run or sync makes it one")
    }
    guard missing.isEmpty else {
      throw KizunaSyncError(
        .store,
        "somebody dropped \(missing.map(\.name).joined(separator: ", ")) from \(path); the next run or sync makes "
          + "\(missing.count == 1 ? "it" : "them") again and reads what is not known any more from the server")
    }
  }

  static func heldWrites(_ database: Database, _ harvested: SQLiteValue) throws -> [String: Int] {
    var held: [String: Int] = [:]
    for table in try database.tablesHeld() {
      held[table] =
        try database.first(
          "SELECT (SELECT count(*) FROM _kizunasync_outbox WHERE tbl = ?1 AND state < 2) "
            + "+ (SELECT count(*) FROM _kizunasync_capture WHERE tbl = ?1 AND (seq < 0 OR seq > ?2))",
          [.text(table), harvested.isNull ? 0 : harvested]
        ) { $0.int(0) } ?? 0
    }
    return held.filter { $0.value > 0 }
  }

  private static func read(
    _ database: Database, holder: Holder?, record: RunRecord?
  ) throws -> KizunaSyncReplicaStatus {
    func count(_ sql: String, _ arguments: SQLiteValue...) throws -> Int {
      try database.first(sql, arguments) { $0.int(0) } ?? 0
    }
    let harvested = try database.meta(.harvested)
    let others = HeldEntries(tables: try database.tablesHeld()).isOfOthers
    let captured = try count(
      "SELECT count(*) FROM _kizunasync_capture WHERE seq > ? AND tbl <> '' AND \(others)",
      harvested.isNull ? 0 : harvested)
    let queued = try count("SELECT count(*) FROM _kizunasync_outbox WHERE state < 2 AND \(others)")
    let held = try heldWrites(database, harvested)
    // Oldest first: what is queued, then what no client has taken up yet.
    let oldest =
      try database.first(
        "SELECT tbl, at, seq, error FROM _kizunasync_outbox WHERE state < 2 AND \(others) ORDER BY seq LIMIT 1", [],
        { row in
          OldestWrite(
            table: row.string(0), at: row.int64(1), attempts: try database.triesOfHead(row.int64(2)),
            lastError: row.optionalString(3))
        })
      ?? database.first(
        "SELECT tbl, at FROM _kizunasync_capture WHERE seq > ? AND tbl <> '' AND \(others) ORDER BY seq LIMIT 1",
        [harvested.isNull ? 0 : harvested],
        {
          OldestWrite(
            table: $0.string(0), at: JournalTime.milliseconds($0.value(1)), attempts: 0, lastError: nil)
        })
    var rows: [String: Int] = [:]
    var missing: [String] = []
    var capture: [String: Replica.Capture] = [:]
    for table in try database.map("SELECT name FROM _kizunasync_tables ORDER BY name", [], { $0.string(0) }) {
      // A view in its place would be counted as well, and may fail.
      let exists = try database.exists(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", .text(table))
      if exists { rows[table] = try database.countRows(of: table) } else { missing.append(table) }
      if exists { capture[table] = try Replica.capture(of: table, in: database) }
    }
    let noted = try database.meta(.lastSync).integer
    let succeededAt = record?.success(notedAs: noted)
    // What an ended process left says nothing of the one that is there now.
    let doorbell = record?.processID == holder?.processID ? record?.doorbell : nil
    return KizunaSyncReplicaStatus(
      cursor: try database.meta(.cursor).text ?? "0", clientID: try database.meta(.clientID).text,
      outboxDepth: queued + captured, heldWrites: held, oldestWrite: oldest,
      rejections: try count("SELECT count(*) FROM _kizunasync_rejections WHERE dismissed = 0"),
      overwrites: try count("SELECT count(*) FROM _kizunasync_overwrites WHERE dismissed = 0"),
      parkedRows: try count("SELECT count(*) FROM _kizunasync_parked"),
      softBlock: try database.meta(.softBlock).text, lastSyncAt: succeededAt ?? noted,
      isLastSyncExact: succeededAt != nil,
      lastSweepAt: try database.meta(.sweptAt).integer,
      hiddenRowsKept: Int(try database.meta(.hiddenRowsKept).integer ?? 0),
      clockOffset: try database.meta(.clockOffset).integer,
      lastError: record?.failure.map { LastError(code: $0.code, message: $0.message, at: $0.at) }, rows: rows,
      missingTables: missing, tablesToRead: try database.rereads().tables.keys.sorted(),
      copiedAt: try database.meta(.copiedAt).integer, ignoredColumns: try database.ignoredColumns(),
      problem: try database.meta(.schemaProblem).text, tablesSetAside: try database.tablesSetAside(),
      captureOff: capture.filter { $0.value == .off }.keys.sorted(),
      uncaptured: capture.filter { $0.value == .lacking }.keys.sorted(), holder: holder,
      doorbell: doorbell.map { Doorbell(state: $0.state, reason: $0.reason, since: $0.since) })
  }
}

extension Database {
  /// SQLite counts in the smallest index, which may need a collation that is not known here.
  fileprivate func countRows(of table: String) throws -> Int {
    func count(_ hint: String) throws -> Int {
      try first("SELECT count(*) FROM \(SQL.name(table))\(hint)") { $0.int(0) } ?? 0
    }
    do { return try count("") } catch let error as SQLiteError where error.isOfTheRow {
      return try count(" NOT INDEXED")
    }
  }
}
