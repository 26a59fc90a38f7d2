import HostKit

/// The writes of a database that are on their way, and those that did not arrive: for people and monitoring, without a
/// client and also while one is at work.
///
/// Everything here takes no lock on the database, uses short transactions, and blocks; call it on a thread that may wait.
/// Errors are `KizunaSyncError`: `STORE_UNAVAILABLE` when the file is missing, is no database or no replica, and what
/// else SQLite says.
public enum KizunaSyncOutbox {
  /// A write that the server has not decided.
  public struct Queued: Sendable, Hashable {
    public let mutationId: String
    public let table: String
    public let pk: String
    public let op: KizunaSyncOp
    /// The columns it sets or transforms.
    public let columns: [String]
    /// Writes of one name are all-or-nothing on the server.
    public let group: String?
    /// It went out at least once, and the answer is missing.
    public let isSent: Bool
    /// How often it was sent without a verdict while it was the oldest.
    public let attempts: Int
    /// What the last attempt ended with.
    public let lastError: String?
    /// When it was made, milliseconds since 1970.
    public let at: Int64
  }

  /// A write that the server refused or that was given up, with everything that was all-or-nothing with it.
  public struct Refused: Sendable, Equatable {
    public let rejection: KizunaSyncRejection
    /// The mutation ids of all its members.
    public let members: [String]
    /// What was refused, one JSON object a member, as it was sent: with the values.
    public let memberJson: [String]
  }

  /// What became of a list of mutation ids.
  public struct Outcome: Sendable, Hashable {
    public struct Retried: Sendable, Hashable {
      public let mutationId: String
      /// The ids under which its members are queued now.
      public let queuedAs: [String]
    }

    public var retried: [Retried] = []
    public var discarded: [String] = []
    /// Ids of no entry that is held and not dismissed.
    public var unknown: [String] = []
    /// Writes that cannot be queued again, with the reason; they stay in the journal.
    public var failed: [String: String] = [:]
  }

  /// Changes by plain SQL that no client has taken up yet. They have no ids; several may become one write.
  public struct Captured: Sendable, Hashable {
    public let table: String
    public let changes: Int
  }

  /// A row of the server that a constraint of this database refuses. It is kept aside and tried again with each change.
  public struct Parked: Sendable, Hashable {
    public let table: String
    public let pk: String
    /// SQLite's words, which name columns and constraints and no value.
    public let reason: String
  }

  /// By table and key.
  public static func parked(databasePath path: String) throws -> [Parked] {
    try reading(path) { database in
      try database.map("SELECT tbl, pk, error FROM _kizunasync_parked ORDER BY tbl, pk") {
        Parked(table: $0.string(0), pk: $0.string(1), reason: $0.string(2))
      }
    }
  }

  /// By table.
  public static func captured(databasePath path: String) throws -> [Captured] {
    try reading(path) { database in
      let harvested = try database.meta(.harvested)
      return try database.map(
        "SELECT tbl, count(*) FROM _kizunasync_capture WHERE (seq > ? OR seq < 0) AND tbl <> '' GROUP BY tbl ORDER BY tbl",
        [harvested.isNull ? 0 : harvested]
      ) { Captured(table: $0.string(0), changes: $0.int(1)) }
    }
  }

  /// Oldest first. Writes by plain SQL that no client has taken up yet are not among them, see
  /// ``captured(databasePath:)``.
  public static func queued(databasePath path: String) throws -> [Queued] {
    try reading(path) { database in
      try database.map(OutboxEntry.selection + " WHERE state < 2 ORDER BY seq", [], OutboxEntry.init).map { entry in
        let note = try database.first(
          "SELECT error, at FROM _kizunasync_outbox WHERE seq = ?", [.integer(entry.seq)]
        ) { ($0.optionalString(0), $0.int64(1)) }
        return Queued(
          mutationId: entry.mutationID, table: entry.table, pk: entry.pk, op: entry.op,
          columns: columns(entry.columns, entry.transforms), group: entry.group, isSent: entry.state == .sent,
          attempts: try database.triesOfHead(entry.seq), lastError: note?.0, at: note?.1 ?? 0)
      }
    }
  }

  private static func columns(_ texts: String?...) -> [String] {
    texts.compactMap { $0.flatMap { try? JSONValue(parsing: $0) }?.objectValue?.keys }.flatMap { $0 }
      .sorted(by: JSONWriter.bytewise)
  }

  /// Oldest first.
  public static func refused(databasePath path: String, includeDismissed: Bool = false) throws -> [Refused] {
    try reading(path) { database in
      try Replica.rejections(includeDismissed: includeDismissed, in: database).map { rejection, members in
        let list = (try? JSONValue(parsing: members))?.arrayValue ?? []
        return Refused(
          rejection: rejection, members: list.compactMap { $0["mutation_id"]?.stringValue },
          memberJson: list.map { JSONWriter.text($0) })
      }
    }
  }

  /// Queues refused writes again, see ``KizunaSyncClient/retryRejection(_:)``.
  ///
  /// A client at work on the file sends them with its next run.
  /// - Parameters:
  ///   - ids: nil means all that are not dismissed.
  ///   - config: the configuration of the client whose database it is.
  public static func retry(_ ids: [String]?, config: KizunaSyncClientConfig) throws -> Outcome {
    try ConfigurationCheck.check(config)
    let path = config.databasePath ?? ""
    let wanted = try ids ?? refused(databasePath: path).map(\.rejection.mutationId)
    // A replica would be made where there is none.
    if ids != nil { _ = try refused(databasePath: path) }
    return try StoreFailure.translating(path: path) {
      let replica = try Replica(
        Replica.Settings(
          path: path, clientID: config.clientId.lowercased(), tables: config.tables,
          localOnlyColumns: Set(config.remote?.localOnlyColumns ?? [])), clock: SystemClock.shared, log: .none)
      defer { replica.close() }
      var outcome = Outcome()
      for id in wanted {
        do {
          let queued = try replica.retryRejection(id)
          if queued.isEmpty {
            outcome.unknown.append(id)
          } else {
            outcome.retried.append(.init(mutationId: id, queuedAs: queued))
          }
        } catch let error as KizunaSyncError {
          switch ErrorCode(rawValue: error.code) {
          case .unknownTable, .localUnsupported, .localConstraint: outcome.failed[id] = error.message
          default: throw error
          }
        }
      }
      return outcome
    }
  }

  /// Dismisses refused writes: what they would have written is given up.
  /// - Parameter ids: nil means all.
  public static func discard(_ ids: [String]?, databasePath path: String) throws -> Outcome {
    let wanted = try ids ?? refused(databasePath: path).map(\.rejection.mutationId)
    if ids != nil { _ = try refused(databasePath: path) }
    return try StoreFailure.translating(path: path) {
      let database = try Database(DatabaseConfiguration(path: path, role: .visitor))
      defer { database.close() }
      return try database.transaction {
        var outcome = Outcome()
        for id in wanted {
          try database.run(
            "UPDATE _kizunasync_rejections SET dismissed = 1 WHERE mutation_id = ? AND dismissed = 0", .text(id))
          if database.changes > 0 { outcome.discarded.append(id) } else { outcome.unknown.append(id) }
        }
        return outcome
      }
    }
  }

  private static func reading<Result>(_ path: String, _ body: (Database) throws -> Result) throws -> Result {
    try KizunaSyncReplicaStatus.reading(path, body)
  }
}
