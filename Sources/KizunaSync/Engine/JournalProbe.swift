import HostKit

/// Tells the commit watcher whether the capture journal has grown or the schema has changed, on a connection of its own,
/// so that the sign of an own commit costs one look and no hop to the engine.
final class JournalProbe: Sendable {
  private struct State {
    var known: Int64 = 0
    var schema: Int64 = -1
    /// Used under the lock only.
    var connection: SendableConnection?
    var isClosed = false
  }

  private let path: String
  private let state = Locked(State())

  init(path: String) {
    self.path = path
  }

  /// Takes note of what the engine has seen.
  /// - Parameters:
  ///   - journal: the newest journal row that is in the outbox.
  ///   - schema: the state of the schema that the triggers fit.
  func note(_ journal: Int64, schema: Int64) {
    state.withLock { state in
      state.known = max(state.known, journal)
      state.schema = schema
    }
  }

  /// Whether there is more than the engine has seen. Called on the watcher's thread; blocks for a read.
  func hasNews() -> Bool {
    state.withLock { state in
      guard !state.isClosed else { return false }
      if state.connection == nil {
        state.connection = (try? Database(DatabaseConfiguration(path: path, role: .reader))).map(
          SendableConnection.init)
      }
      guard let database = state.connection?.database else { return false }
      // Less than known is news too: somebody deleted rows of it.
      if let newest = try? database.value("SELECT max(seq) FROM _kizunasync_capture"),
        newest.integer ?? 0 != state.known
      {
        return true
      }
      let schema = (try? database.value("PRAGMA schema_version"))?.integer
      return schema != nil && schema != state.schema
    }
  }

  func close() {
    state.withLock { state in
      state.isClosed = true
      state.connection?.database.close()
      state.connection = nil
    }
  }
}

/// A connection that only ever is touched under one lock, as SQLite's multi-thread mode asks.
private struct SendableConnection: @unchecked Sendable {
  let database: Database
}

extension Replica {
  func newestHarvested() throws -> Int64 {
    try database.meta(.harvested).integer ?? 0
  }
}

extension KizunaSyncTableConfig {
  /// The column the server filters by.
  var bucketColumn: String? {
    switch bucket {
    case .none: nil
    case .byOwner(let column), .byColumn(let column): column
    }
  }
}
