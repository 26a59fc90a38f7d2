import CSQLite
import HostKit

/// A program that holds the write lock of a database.
final class LockingProgram {
  private let handle: OpaquePointer?

  init(_ path: String) throws {
    var opened: OpaquePointer?
    guard sqlite3_open(path, &opened) == SQLITE_OK else { throw ChildProcessError(message: "cannot open \(path)") }
    handle = opened
    sqlite3_busy_timeout(opened, 10_000)
    guard sqlite3_exec(opened, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK else {
      throw ChildProcessError(message: "cannot lock \(path)")
    }
  }

  deinit { sqlite3_close_v2(handle) }

  func end() {
    sqlite3_exec(handle, "COMMIT", nil, nil, nil)
  }
}
