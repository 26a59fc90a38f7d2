import HostKit

/// The connection that reads, on a thread of its own: a long closing transaction of the writer never delays a query.
actor ReplicaReader {
  private let settings: Replica.Settings
  private let thread = SerialThread(name: "kizuna-read")
  private var database: Database?
  private var isClosed = false

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  init(_ settings: Replica.Settings) {
    self.settings = settings
  }

  func read<Result: Sendable>(_ body: @Sendable (ReadSession) throws -> Result) throws -> Result {
    try StoreFailure.translating(path: settings.path) {
      let database = try connection()
      let session = ReadSession(database: database) { [settings] table in
        guard let config = settings.tables[table] else {
          throw KizunaSyncError(.unknownTable, "the table \(table) is not configured")
        }
        return try Replica.layout(table, config: config, localOnly: settings.localOnlyColumns, in: database)
      }
      return try database.snapshot { try body(session) }
    }
  }

  private func connection() throws -> Database {
    if isClosed { throw KizunaSyncError(.engineUnavailable, "the client was disposed") }
    if let database { return database }
    let opened = try Database(DatabaseConfiguration(path: settings.path, role: .reader))
    database = opened
    return opened
  }

  private func close() {
    isClosed = true
    database?.close()
    database = nil
  }

  /// Returns when the connection is closed and the thread has ended.
  nonisolated func dispose() async {
    await close()
    await thread.stopAndWait()
  }
}
