import CSQLite
import HostKit

/// Turns what SQLite says into the catalogue's words: a code, and a sentence with the remedy.
enum StoreFailure {
  static func describe(_ error: SQLiteError, path: String?) -> KizunaSyncError {
    let file = path.map { "the database \($0)" } ?? "the database in memory"
    let directory = path.map(directory(of:)) ?? "."
    if let path, DiskSpace.explains(error, path: path) {
      return KizunaSyncError(
        .store, "the disk that holds \(file) is full; free some space and the next run goes on where this one stopped")
    }
    switch error.primaryCode {
    case SQLITE_BUSY, SQLITE_LOCKED:
      return KizunaSyncError(
        .storeBusy,
        "another program held the write lock of \(file) for longer than 5 s; end its transaction or let it commit sooner"
      )
    case SQLITE_NOTADB:
      return KizunaSyncError(
        .storeUnavailable,
        "\(path ?? "the file") is not an SQLite database; name another file, or move this one away so that a new one is made"
      )
    case SQLITE_CANTOPEN:
      return KizunaSyncError(
        .storeUnavailable,
        "\(file) cannot be opened; its directory \(directory) must exist and be writable by this user")
    case SQLITE_READONLY:
      return KizunaSyncError(
        .storeUnavailable,
        "\(file) cannot be written; the file and its directory \(directory) must be writable by this user, because SQLite keeps its -wal file there"
      )
    case SQLITE_PERM, SQLITE_AUTH:
      return KizunaSyncError(
        .storeUnavailable,
        "\(file) may not be used by this user; correct the permissions of the file and of \(directory)")
    case SQLITE_CORRUPT:
      return KizunaSyncError(
        .store, "\(file) is damaged (\(error.message)); restore a copy, or remove the file and let it be filled again")
    case SQLITE_IOERR:
      return KizunaSyncError(
        .store, "reading or writing \(file) failed (\(error.message), code \(error.code)); check the disk")
    case SQLITE_CONSTRAINT:
      return KizunaSyncError(.localConstraint, error.message)
    case SQLITE_ERROR where error.message.hasPrefix(missingTable + "main."):
      // That is how SQLite names what a trigger or a view needs.
      let table = error.message.dropFirst(missingTable.count + "main.".count)
      return KizunaSyncError(
        .store,
        "a trigger or view in \(file) needs the table \(table), which is not there; put it back, or correct what needs it"
      )
    case SQLITE_ERROR where error.message.hasPrefix(missingTable):
      let table = error.message.dropFirst(missingTable.count)
      return KizunaSyncError(
        .store,
        "the table \(table) was dropped from \(file); the next run makes it again and reads its rows from the server")
    default:
      return KizunaSyncError(.store, "\(file) refused a statement: \(error.message) (SQLite code \(error.code))")
    }
  }

  /// How SQLite's words begin for a statement that names a table the file lacks.
  private static let missingTable = "no such table: "

  /// Runs `body` and translates what SQLite throws.
  static func translating<Result>(path: String?, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      throw describe(error, path: path)
    }
  }

  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
