import Glibc
import HostKit

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
    // A file that is to be made: a link may lead to it, and its folder may be reached through one.
    let path = Self.target(of: path)
    let slash = path.lastIndex(of: "/")
    let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let name = slash.map { path[path.index(after: $0)...] } ?? path[...]
    database = Self.real(folder).map { $0 == "/" ? "/\(name)" : "\($0)/\(name)" } ?? path
  }

  /// Where a link leads though nothing is there yet, as SQLite makes the file there.
  private static func target(of path: String) -> String {
    var path = path
    for _ in 0..<40 {
      var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
      let count = readlink(path, &buffer, buffer.count)
      guard count > 0 else { break }
      let link = String(decoding: buffer[..<count], as: UTF8.self)
      path = HostFile.resolve(link, in: HostFile.directory(of: path))
    }
    return path
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

  /// Holds what names this copy of the database, see `InstanceFile`.
  var instance: String { database + "-kizuna.instance" }

  var directory: String {
    guard let slash = database.lastIndex(of: "/") else { return "." }
    return slash == database.startIndex ? "/" : String(database[..<slash])
  }

  /// The last component of `path`.
  static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }
}

extension DatabaseFiles {
  /// What is wrong with a path that leads to something that is no file; nil for a file and for nothing.
  static func problem(withFile path: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0 else {
      switch errno {
      case ELOOP:
        return
          "\(path) leads nowhere: a symbolic link on the way leads back to itself; remove that link, or name another path"
      case ENAMETOOLONG: return "\(path) has a name that is too long for the file system; name a shorter path"
      default: return nil
      }
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return nil
    case S_IFDIR: return "\(path) is a directory; name a file in it, such as \(path == "/" ? "" : path)/replica.db"
    default: return "\(path) is neither a file nor new; name another path"
    }
  }

  /// What keeps a client from working with a database, as far as it shows before anything is opened; nil when nothing
  /// does. Names what is wrong and the remedy.
  static func problem(with path: String) -> String? {
    if let problem = problem(withFile: path) { return problem }
    let files = DatabaseFiles(path)
    var status = stat()
    if stat(path, &status) == 0, access(files.database, R_OK | W_OK) != 0 {
      return
        "the database \(path) cannot be used: \(String(cString: strerror(errno))); this user must be able to read and write it"
    }
    let folder = files.directory
    guard stat(folder, &status) == 0 else {
      let reason = errno
      return reason == ENOENT
        ? "the directory \(folder) of the database does not exist; make it, or name another path"
        : "the directory \(folder) of the database cannot be used: \(String(cString: strerror(reason)))"
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      return "\(folder) is not a directory, so no database can be in it; name another path"
    }
    guard access(folder, W_OK | X_OK) == 0 else {
      return
        "the directory \(folder) of the database cannot be written: \(String(cString: strerror(errno))); this user must be able to, because SQLite and the lock keep files beside the database"
    }
    return nil
  }
}
