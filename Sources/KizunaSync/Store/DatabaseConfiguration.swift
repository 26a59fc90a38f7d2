/// How a connection is opened: the one place that names pragmas.
struct DatabaseConfiguration: Sendable {
  enum Role: Sendable {
    /// The one connection that writes.
    case writer
    /// Never writes; sees the last commit while the writer works.
    case reader
    /// Reads and writes beside a running gateway (`status`, `outbox`): short transactions, no schema of its own.
    case visitor
  }

  /// A file, or nil for a private database in memory.
  var path: String?
  var role: Role
  /// The file is read as it lies there, without locks and whatever the user may write: for a directory that cannot be
  /// written while nobody has the database open.
  var isImmutable = false
  /// Nobody else may have the file open meanwhile, and the index of the log is kept in memory instead of beside the file.
  /// The log stays as it is.
  var isAlone = false
  /// How long SQLite waits for another process's lock before it gives up.
  var busyTimeoutMilliseconds: Int32 = 5000

  /// What SQLite is asked to open.
  var name: String {
    guard let path else { return ":memory:" }
    guard isImmutable else { return path }
    let characters = path.utf8.map { byte -> String in
      switch byte {
      case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"): "%" + String(byte, radix: 16)
      default: String(decoding: [byte], as: UTF8.self)
      }
    }
    return "file:" + characters.joined() + "?immutable=1"
  }

  /// Run once after opening.
  ///
  /// The writer stays at `synchronous=NORMAL`: a power cut may undo the last commits but never leaves half a one. What
  /// only this host knows, writes of its own, is committed under `FULL` (see `Replica.transaction`); what is undone of
  /// the rest the server tells again.
  var pragmas: [String] {
    var list: [String] = []
    // Before the log is looked at for the first time.
    if isAlone { list.append("PRAGMA locking_mode = EXCLUSIVE") }
    if role == .writer, path != nil { list.append("PRAGMA journal_mode = WAL") }
    switch role {
    case .writer:
      list += ["PRAGMA synchronous = NORMAL", "PRAGMA cache_size = -8000", "PRAGMA foreign_keys = OFF"]
    case .reader:
      list += ["PRAGMA query_only = ON", "PRAGMA cache_size = -2000"]
    case .visitor:
      list += ["PRAGMA synchronous = NORMAL"]
    }
    return list
  }
}
