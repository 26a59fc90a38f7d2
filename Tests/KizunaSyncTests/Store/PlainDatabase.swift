import CSQLite

/// SQLite without any of our code.
final class PlainDatabase {
  private var handle: OpaquePointer?

  struct Failure: Error { let message: String }

  init(_ path: String) throws {
    guard
      sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nil)
        == SQLITE_OK
    else { throw Failure(message: "cannot open") }
    sqlite3_busy_timeout(handle, 5000)
  }

  /// In write-ahead mode, with a table `t (a)`.
  static func withLog(_ path: String) throws -> PlainDatabase {
    let database = try PlainDatabase(path)
    try database.run("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t (a)")
    return database
  }

  deinit { close() }

  /// Idempotent. To be called before the file is removed when somebody else may still hold this object: SQLite tells
  /// files apart by inode, and the next file of another test may get the same one.
  func close() {
    sqlite3_close_v2(handle)
    handle = nil
  }

  func run(_ sql: String) throws {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
      throw Failure(message: String(cString: sqlite3_errmsg(handle)))
    }
  }

  /// The first column of the rows, as text.
  func texts(_ sql: String) throws -> [String] {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else {
      throw Failure(message: String(cString: sqlite3_errmsg(handle)))
    }
    var rows: [String] = []
    while sqlite3_step(statement) == SQLITE_ROW {
      rows.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "NULL")
    }
    return rows
  }

  func integer(_ sql: String) -> Int {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, sqlite3_step(statement) == SQLITE_ROW
    else {
      return -1
    }
    return Int(sqlite3_column_int64(statement, 0))
  }
}
