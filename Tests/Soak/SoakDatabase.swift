import CSQLite
import HostKit

/// What any program does with a gateway's file: opens it, waits for locks, runs SQL. On a thread of its own.
actor SoakDatabase {
  private let thread = SerialThread(name: "soak-sql")
  private let path: String

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  init(_ path: String) {
    self.path = path
  }

  deinit { thread.stop() }

  /// - Returns: the first column of the rows of the last statement.
  @discardableResult
  func run(_ sql: String) throws -> [String] {
    var handle: OpaquePointer?
    defer { sqlite3_close(handle) }
    guard sqlite3_open(path, &handle) == SQLITE_OK else { throw failure(handle) }
    sqlite3_busy_timeout(handle, 20_000)
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

  private func failure(_ handle: OpaquePointer?) -> SoakProblem {
    SoakProblem("SQL failed: \(String(cString: sqlite3_errmsg(handle)))")
  }
}

struct SoakProblem: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
