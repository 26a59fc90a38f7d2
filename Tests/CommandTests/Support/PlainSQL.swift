import CSQLite
import HostKit

/// What any program would do with the database file: open it, wait for locks, run SQL.
enum PlainSQL {
  /// Runs statements and returns the first column of the rows of the last one.
  @discardableResult
  static func run(_ path: String, _ sql: String) throws -> [String] {
    var handle: OpaquePointer?
    defer { sqlite3_close(handle) }
    guard sqlite3_open(path, &handle) == SQLITE_OK else { throw failure(handle) }
    sqlite3_busy_timeout(handle, 10_000)
    var rows: [String] = []
    let result = withUnsafeMutablePointer(to: &rows) { rows in
      sqlite3_exec(
        handle, sql,
        { context, count, values, _ in
          if count > 0, let context {
            let cell = values?[0].map { String(cString: $0) } ?? "NULL"
            context.assumingMemoryBound(to: [String].self).pointee.append(cell)
          }
          return 0
        }, rows, nil)
    }
    guard result == SQLITE_OK else { throw failure(handle) }
    return rows
  }

  private static func failure(_ handle: OpaquePointer?) -> ChildProcessError {
    ChildProcessError(message: "SQL failed: \(String(cString: sqlite3_errmsg(handle)))")
  }
}
