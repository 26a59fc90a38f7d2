import CSQLite
import Glibc

/// Whether a full disk is behind an error of SQLite's. It says so itself only for pages of the database: what it writes
/// beside the file fails as an input or output error, or as a file that cannot be opened.
enum DiskSpace {
  /// What SQLite takes at once for the smallest of its files, in bytes.
  private static let least: UInt64 = 65_536

  static func explains(_ error: SQLiteError, path: String) -> Bool {
    switch error.primaryCode {
    case SQLITE_FULL: return true
    case SQLITE_IOERR, SQLITE_CANTOPEN: break
    default: return false
    }
    if error.systemError == ENOSPC || error.systemError == EDQUOT { return true }
    // Not every place in SQLite notes the reason.
    guard error.primaryCode == SQLITE_IOERR, error.systemError == 0 || error.isOfSharedMemory else { return false }
    return isFull(DatabaseFiles(path).directory)
  }

  private static func isFull(_ directory: String) -> Bool {
    var space = statvfs()
    guard statvfs(directory, &space) == 0 else { return false }
    let blocks = geteuid() == 0 ? space.f_bfree : space.f_bavail
    return UInt64(blocks) * UInt64(space.f_frsize) < least || space.f_files > 0 && space.f_favail == 0
  }
}
