import CSQLite

/// What SQLite refused. Holds the statement but never its arguments: those are row values.
struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The extended result code.
  let code: Int32
  /// SQLite's own words.
  let message: String
  /// The statement, nil when opening or committing failed.
  let sql: String?
  /// The `errno` behind it, 0 when SQLite noted none.
  let systemError: Int32

  init(code: Int32, message: String, sql: String?, systemError: Int32 = 0) {
    self.code = code
    self.message = message
    self.sql = sql
    self.systemError = systemError
  }

  /// The code without its extension.
  var primaryCode: Int32 { code & 0xFF }

  var isBusy: Bool { primaryCode == SQLITE_BUSY || primaryCode == SQLITE_LOCKED }
  /// The row does not fit the table. SQLite has a code of its own for a text in an `INTEGER PRIMARY KEY`.
  var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT || primaryCode == SQLITE_MISMATCH }

  /// It is about the values, or what triggers and checks make of them; not about the file, its locks or the disk.
  var isOfTheRow: Bool { isConstraint || primaryCode == SQLITE_ERROR || primaryCode == SQLITE_TOOBIG }

  /// The index of the log, which SQLite keeps in a file beside the database, cannot be made or grown.
  var isOfSharedMemory: Bool {
    // SQLITE_IOERR_SHMOPEN, _SHMSIZE and _SHMMAP, which Swift does not import.
    [18, 19, 21].contains { code == SQLITE_IOERR | $0 << 8 }
  }

  var description: String {
    "SQLite error \(code): \(message)" + (sql.map { " in \"\($0)\"" } ?? "")
  }
}
