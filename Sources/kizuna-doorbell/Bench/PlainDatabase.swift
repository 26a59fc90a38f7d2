import CSQLite
import HostKit

/// A database as any program opens it: SQLite's defaults, no code of the replica.
///
/// Used from one thread.
final class PlainDatabase {
  private let handle: OpaquePointer

  init(_ path: String) throws {
    var opened: OpaquePointer?
    guard sqlite3_open(path, &opened) == SQLITE_OK, let handle = opened else {
      sqlite3_close(opened)
      throw CommandFailure(.database, "the bench's database \(path) cannot be opened")
    }
    self.handle = handle
  }

  deinit {
    sqlite3_close(handle)
  }

  func execute(_ script: String) throws {
    guard sqlite3_exec(handle, script, nil, nil, nil) == SQLITE_OK else { throw failure() }
  }

  /// The first cells of a query's rows.
  func texts(_ sql: String) throws -> [String] {
    let statement = try prepare(sql)
    defer { sqlite3_finalize(statement) }
    var texts: [String] = []
    while sqlite3_step(statement) == SQLITE_ROW {
      texts.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
    }
    return texts
  }

  /// Runs one prepared statement for each number in `numbers`, bound to its only parameter.
  func repeated(_ sql: String, _ numbers: Range<Int>) throws {
    let statement = try prepare(sql)
    defer { sqlite3_finalize(statement) }
    for number in numbers {
      sqlite3_bind_int64(statement, 1, Int64(number))
      let result = sqlite3_step(statement)
      sqlite3_reset(statement)
      guard result == SQLITE_DONE else { throw failure() }
    }
  }

  private func prepare(_ sql: String) throws -> OpaquePointer {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else { throw failure() }
    return statement
  }

  private func failure() -> CommandFailure {
    CommandFailure(.database, "the bench's database failed: \(String(cString: sqlite3_errmsg(handle)))")
  }
}
