import Glibc

/// The names of the files that belong to one database.
///
/// SQLite follows symbolic links before it names its journal, so links are followed here too: whoever opens the same
/// database by another name must find the same lock and the same write-ahead log.
struct DatabaseFiles: Sendable, Hashable {
  /// Without symbolic links, as far as the file or its folder exists.
  let database: String

  init(_ path: String) {
    if let real = Self.real(path) {
      database = real
      return
    }
    // A file that is to be made: its folder may be reached through a link.
    let slash = path.lastIndex(of: "/")
    let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let name = slash.map { path[path.index(after: $0)...] } ?? path[...]
    database = Self.real(folder).map { $0 == "/" ? "/\(name)" : "\($0)/\(name)" } ?? path
  }

  private static func real(_ path: String) -> String? {
    guard let buffer = realpath(path, nil) else { return nil }
    defer { free(buffer) }
    return String(cString: buffer)
  }

  var writeAheadLog: String { database + "-wal" }
  var sharedMemory: String { database + "-shm" }
  var lock: String { database + "-kizuna.lock" }
  /// How the last run ended, see `RunRecordFile`.
  var runs: String { database + "-kizuna.run" }

  var directory: String {
    guard let slash = database.lastIndex(of: "/") else { return "." }
    return slash == database.startIndex ? "/" : String(database[..<slash])
  }

  /// The last component of `path`.
  static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }
}
