import CSQLite
import HostKit

/// Calls something before every SQL statement that any connection of this process runs on one file, before the parts of
/// its triggers too. The product has no hook for this; SQLite has.
enum StatementSpy {
  /// - Parameter writes: whether the statement writes. Called on the connection's thread.
  typealias Handler = @Sendable (_ connection: OpaquePointer, _ writes: Bool) -> Void

  private static let handlers = Locked<[String: Handler]>([:])

  /// Every connection that is opened from now on is looked at.
  private static let isInstalled: Bool = {
    typealias Entry = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
    let entry: Entry = { connection, _, _ in
      sqlite3_trace_v2(connection, UInt32(SQLITE_TRACE_STMT), StatementSpy.traced, nil)
      return SQLITE_OK
    }
    // SQLite declares the entry point without its arguments and calls it with them.
    return sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self)) == SQLITE_OK
  }()

  private static let traced:
    @convention(c) (UInt32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Int32 = {
      _, _, statement, _ in
      guard let statement = statement.map(OpaquePointer.init), let connection = sqlite3_db_handle(statement),
        let name = sqlite3_db_filename(connection, "main")
      else { return 0 }
      let handler = StatementSpy.handlers.withLock { $0.isEmpty ? nil : $0[String(cString: name)] }
      handler?(connection, sqlite3_stmt_readonly(statement) == 0)
      return 0
    }

  /// Looks at connections to `path` that are opened from now on, when a handler is set.
  static func prepare() { precondition(isInstalled) }

  /// - Parameter handler: nil ends it.
  static func watch(_ path: String, _ handler: Handler?) {
    prepare()
    handlers.withLock { $0[path] = handler }
  }
}
