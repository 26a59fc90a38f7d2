import HostKit

/// What the engine knows and is told: queue, journals, identity, buckets.
extension SyncEngine {
  // MARK: State

  func outboxDepth() throws -> Int {
    try translating {
      try replica().harvestNow()
      return try replica().outboxDepth()
    }
  }

  func checkpoint() throws -> KizunaSyncCheckpoint { try translating { try replica().checkpoint() } }

  func rejections(includeDismissed: Bool) throws -> [KizunaSyncRejection] {
    try translating { try replica().rejections(includeDismissed: includeDismissed) }
  }

  func dismissRejection(_ mutationID: String) throws -> Bool {
    try translating { try replica().dismissRejection(mutationID) }
  }

  func overwrites(includeDismissed: Bool) throws -> [KizunaSyncOverwrite] {
    try translating { try replica().overwrites(includeDismissed: includeDismissed) }
  }

  func dismissOverwrite(_ id: Int64) throws -> Bool {
    try translating { try replica().dismissOverwrite(id) }
  }

  /// What `inspect` shows: `queued`, `depth`, `last_mutation_id`, `cursor`, `client_id`.
  func inspect() throws -> [String: JSONValue] {
    try translating {
      let replica = try replica()
      try replica.harvestNow()
      return [
        "queued": .array(try replica.queued()), "depth": .int(try replica.outboxDepth()),
        "last_mutation_id": .string(orNull: try replica.database.meta(.lastMutationID).text),
        "cursor": .string(try replica.durableCursor()), "client_id": .string(try replica.clientID()),
      ]
    }
  }

  /// What was not delivered, or not taken, and waits for somebody: nothing of it goes away by itself.
  func leftovers() throws -> SyncLeftovers {
    try translating {
      let replica = try replica()
      let database = replica.database
      func count(_ sql: String) throws -> Int { Int(try database.value(sql)?.integer ?? 0) }
      return try database.snapshot {
        SyncLeftovers(
          refused: try count("SELECT count(*) FROM _kizunasync_rejections WHERE dismissed = 0"),
          parkedRows: try count("SELECT count(*) FROM _kizunasync_parked"),
          tablesSetAside: Set(replica.setAside.keys).union(try database.tablesSetAside().keys).sorted(),
          heldWrites: try KizunaSyncReplicaStatus.heldWrites(database, database.meta(.harvested)))
      }
    }
  }

  /// Sets the durable cursor without pulling.
  /// - Throws: `LOCAL_UNSUPPORTED` for text that is no cursor.
  func seedCheckpoint(_ cursor: String) throws {
    guard CursorToken.isWellFormed(cursor) else {
      throw KizunaSyncError(.localUnsupported, "the text given is not a pull cursor")
    }
    try translating { try replica().seed(cursor: cursor) }
  }

  /// Wipes rows, queue and journals, also writes that were never sent; lifts a block; the client gets a new id.
  func reset() throws {
    try translating { try replica().reset() }
    // The empty replica is theirs who are signed in; what is written before the next sync is, too.
    try meetOwner()
    raise([.localChanged])
  }

  /// Replaces the capture triggers by others that refuse every write and name no column.
  func turnCaptureOff() throws {
    try translating { try replica().turnCaptureOff() }
  }

  // MARK: Identity and buckets

  /// Sets what is sent as bearer token. The first `sub` becomes the owner; a different one blocks sync until a reset.
  /// - Throws: `CONFIG_INVALID` for a text that no header can carry.
  func setAccessToken(_ token: String?) throws {
    let isAwaited = (try? openReplica?.isOwnerAwaited()) ?? false
    try noteAccessToken(token)
    guard isAwaited, lost == nil, openReplica != nil else { return }
    try translating { _ = try replica().harvestNow() }
    try raiseForeignChanges()
  }

  func noteAccessToken(_ token: String?) throws {
    if let token, !token.isEmpty, let wrong = SecretText.problem(token, .token) {
      throw KizunaSyncError(.configInvalid, "the access token \(wrong)")
    }
    if token == self.token, token != nil, subject != nil { return try meetOwner() }
    self.token = token
    openReplica?.isSignedIn = token != nil
    subject = token.flatMap(TokenSubject.read)
    try meetOwner()
  }

  /// Whether a token names another user than the owner. Nothing is latched.
  func belongsToAnother(_ token: String) throws -> Bool {
    guard let subject = TokenSubject.read(token), let owner = try translating({ try replica().owner() }) else {
      return false
    }
    return subject != owner
  }

  func meetOwner() throws {
    guard let subject else { return }
    let change = try translating { try replica().meet(owner: subject) }
    if change == .refused { raise([.resetRequired(reason: "identity_changed")]) }
  }

  /// Sets the values of bucket columns.
  /// - Throws: `BUCKET_UNSET` for a column no table is bucketed by.
  func setBucket(_ values: [String: JSONValue]) throws {
    let columns = Set(config.tables.values.compactMap(\.bucketColumn))
    if let unknown = values.keys.filter({ !columns.contains($0) }).min() {
      throw KizunaSyncError(.bucketUnset, "no table is bucketed by a column \(unknown)")
    }
    for (column, value) in values {
      switch value {
      case .string, .bool: break
      case .number(let number) where number.isInteger: break
      default:
        throw KizunaSyncError(.bucketUnset, "the bucket value of \(column) must be a text, an integer or a boolean")
      }
    }
    let isChanged = values.contains { column, value in bucketValues[column].map { $0 != value } ?? false }
    bucketValues.merge(values) { _, new in new }
    if isChanged { try translating { try replica().forgetTransfer() } }
  }

  /// What a pull asks for: one entry per table, sorted by name.
  /// - Throws: `BUCKET_UNSET`.
  func buckets() throws -> [PullRequest.Bucket] {
    let owner = try replica().database.meta(.owner).text
    return try config.tables.sorted { $0.key < $1.key }.map { table, config in
      guard let column = config.bucketColumn else { return PullRequest.Bucket(table: table, params: [:]) }
      var value = bucketValues[column]
      if case .byOwner = config.bucket, value == nil { value = owner.map(JSONValue.string) }
      guard let value, value != "" else {
        throw KizunaSyncError(
          .bucketUnset,
          config.bucket == .byOwner(column)
            ? "nobody has signed in yet, so the owner of \(table) is unknown; set an access token"
            : "the bucket column \(column) of \(table) has no value; set it with setBucket")
      }
      return PullRequest.Bucket(table: table, params: [column: value])
    }
  }
}
