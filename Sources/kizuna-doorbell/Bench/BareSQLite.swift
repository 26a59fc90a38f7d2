import CSQLite
import HostKit

/// The least a replica can do for one row: upsert it and store the cursor in one transaction, with prepared statements
/// and the pragmas of the real database, without triggers.
///
/// Used from one thread.
final class BareSQLite {
  private let database: OpaquePointer
  private let upsert: OpaquePointer
  private let cursor: OpaquePointer

  init(path: String, synchronous: Int) throws {
    var handle: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK, let handle else {
      sqlite3_close(handle)
      throw CommandFailure(.database, "the floor's database \(path) cannot be opened")
    }
    database = handle
    try Self.execute(
      handle,
      """
      PRAGMA journal_mode=WAL; PRAGMA synchronous=\(synchronous);
      CREATE TABLE row(id PRIMARY KEY, owner_id, title, n) WITHOUT ROWID;
      CREATE TABLE meta(key PRIMARY KEY, value) WITHOUT ROWID;
      """)
    upsert = try Self.prepare(
      handle,
      """
      INSERT INTO row VALUES(?1, ?2, ?3, ?4)
      ON CONFLICT(id) DO UPDATE SET owner_id=excluded.owner_id, title=excluded.title, n=excluded.n
      """)
    cursor = try Self.prepare(handle, "INSERT OR REPLACE INTO meta VALUES('cursor', ?1)")
  }

  deinit {
    sqlite3_finalize(upsert)
    sqlite3_finalize(cursor)
    sqlite3_close(database)
  }

  /// - Returns: nanoseconds from BEGIN to the end of COMMIT.
  func transaction(id: String, owner: String, title: String, n: Int64, cursor text: String) throws -> UInt64 {
    let start = SystemClock.monotonic
    try Self.execute(database, "BEGIN IMMEDIATE")
    bind(upsert, 1, id)
    bind(upsert, 2, owner)
    bind(upsert, 3, title)
    sqlite3_bind_int64(upsert, 4, n)
    bind(cursor, 1, text)
    for statement in [upsert, cursor] {
      let result = sqlite3_step(statement)
      sqlite3_reset(statement)
      guard result == SQLITE_DONE else { throw Self.failure(database) }
    }
    try Self.execute(database, "COMMIT")
    return SystemClock.monotonic - start
  }

  private func bind(_ statement: OpaquePointer, _ index: Int32, _ text: String) {
    _ = kd_sqlite_bind_text_copied(statement, index, text, Int32(text.utf8.count))
  }

  private static func prepare(_ database: OpaquePointer, _ sql: String) throws -> OpaquePointer {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK,
      let statement
    else { throw failure(database) }
    return statement
  }

  private static func execute(_ database: OpaquePointer, _ sql: String) throws {
    guard sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK else { throw failure(database) }
  }

  private static func failure(_ database: OpaquePointer) -> CommandFailure {
    CommandFailure(.database, "the floor's database failed: \(String(cString: sqlite3_errmsg(database)))")
  }
}
