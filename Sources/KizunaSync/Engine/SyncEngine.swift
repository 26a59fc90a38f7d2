import HTTPClient
import HostKit

/// The replica and its conversation with the server.
///
/// Runs on a thread of its own, because SQLite blocks. The network is awaited between transactions, never inside one; one
/// request is in flight at a time, pushes and pulls together. Events are raised on this thread, in order, after the
/// commit they describe.
actor SyncEngine {
  let config: KizunaSyncClientConfig
  let clock: any HostClock
  let log: HostLog
  let settings: Replica.Settings
  let remote: Remote?
  private let emit: @Sendable (KizunaSyncEngineEvent) -> Void
  nonisolated let thread = SerialThread(name: "kizuna-sync")
  private let reader: ReplicaReader?

  private(set) var openReplica: Replica?
  private(set) var lock: DatabaseLock?
  private(set) var files: DatabaseFileGuard?
  /// Why nothing can be done any more: the files are not there, or no longer this engine's.
  var lost: KizunaSyncError?
  let onLoss: @Sendable (KizunaSyncError) -> Void
  private var watcher: ForeignCommitWatcher?
  private let probe: JournalProbe?
  private var gate = RequestGate()
  private(set) var inFlight: Task<HTTPResponse, any Error>?
  private var trace: (@Sendable (SyncTrace) -> Void)?
  private(set) var token: String?
  private var subject: String?
  /// When the answer at hand was committed, `CLOCK_MONOTONIC`; 0 while that is not known better.
  var committedAt: UInt64 = 0
  private var bucketValues: [String: JSONValue] = [:]
  private var reportedForeignRows = 0

  var pageLimit: PageLimit
  var pushPolicy = PushPolicy()
  /// Since when the head of the queue meets nothing but answers that are errors, on `clock`.
  var answeredTroubleSince: UInt64?
  /// Why the last request failed, for those who must tell a refused token from a network that is down.
  private(set) var lastFailure: RemoteFailure?

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  private init(
    config: KizunaSyncClientConfig, http: any HTTPTransport, clock: any HostClock, log: HostLog,
    emit: @escaping @Sendable (KizunaSyncEngineEvent) -> Void, onLoss: @escaping @Sendable (KizunaSyncError) -> Void
  ) {
    self.onLoss = onLoss
    self.config = config
    self.clock = clock
    self.log = log
    self.emit = emit
    remote = config.remote.map { Remote($0, http: http) }
    pageLimit = PageLimit(configured: config.defaultLimit)
    let path = config.databasePath == ":memory:" ? nil : config.databasePath
    settings = Replica.Settings(
      path: path, clientID: config.clientId.lowercased(), tables: config.tables,
      localOnlyColumns: Set(config.remote?.localOnlyColumns ?? []))
    reader = path == nil ? nil : ReplicaReader(settings)
    probe = path.map(JournalProbe.init)
  }

  // MARK: Opening and closing

  /// Opens the replica: takes the file's lock when there is a server to talk to, makes what is missing, and begins to
  /// notice other processes' writes.
  ///
  /// Raises one `.localChanged` and one `.queueDepth`, because a run that was killed may not have raised its own.
  /// - Parameters:
  ///   - emit: called on the engine's thread; must not block.
  ///   - onLoss: called there too, once, when the files are gone from under the engine and it can do nothing any more.
  /// - Throws: `KizunaSyncError`: `STORE_UNAVAILABLE` when the file is locked, unreadable or no database,
  ///   `CONFIG_INVALID` when a table does not fit its configuration.
  static func open(
    config: KizunaSyncClientConfig, http: any HTTPTransport, clock: any HostClock, log: HostLog,
    emit: @escaping @Sendable (KizunaSyncEngineEvent) -> Void,
    onLoss: @escaping @Sendable (KizunaSyncError) -> Void = { _ in }
  ) async throws -> SyncEngine {
    let engine = SyncEngine(config: config, http: http, clock: clock, log: log, emit: emit, onLoss: onLoss)
    do {
      try await engine.start()
    } catch {
      await engine.dispose()
      throw error
    }
    return engine
  }

  private func start() throws {
    if let path = settings.path, remote != nil {
      do {
        lock = try DatabaseLock(database: path)
      } catch {
        throw KizunaSyncError(.storeUnavailable, error.description)
      }
    }
    try translating {
      let replica = try Replica(settings, clock: clock, log: log)
      openReplica = replica
      try replica.recogniseMachine()
    }
    // Before the first harvest: it fills in the owner.
    if let token = config.remote?.accessToken { try setAccessToken(token) }
    try translating {
      let replica = try replica()
      try replica.harvestNow()
      try replica.fillFromQueue()
      reportedForeignRows = replica.foreignRows
      probe?.note(try replica.newestHarvested(), schema: replica.schemaCookie)
    }
    try raise([.localChanged, queueDepthEvent()])
    if let path = settings.path, let probe {
      let files = DatabaseFileGuard(path: path)
      self.files = files
      if openReplica?.database.hasMoved == true {
        throw KizunaSyncError(.store, files.sentence(.init(part: .database, isReplaced: true), unsent: 0))
      }
      do {
        try files.watch { [weak self] in Task { [weak self] in await self?.noticeFiles() } }
        watcher = try ForeignCommitWatcher(database: path) { [weak self] in
          guard probe.hasNews() else { return }
          Task { [weak self] in await self?.noticeForeignCommit() }
        }
      } catch {
        log.warning("store.watch_failed", ["reason": .string("\(error)")])
      }
    }
  }

  /// Ends everything: a request in flight is cut off (its writes stay queued and are sent again), the file is closed and
  /// unlocked. When this returns no thread or transaction of the engine is left, and the file may be deleted. Idempotent.
  nonisolated func dispose() async {
    await shutDown()
    await reader?.dispose()
    await thread.stopAndWait()
  }

  private func shutDown() async {
    isDisposed = true
    inFlight?.cancel()
    await watcher?.stop()
    watcher = nil
    files?.cancel()
    await enterGate()
    defer { gate.leave() }
    openReplica?.close()
    openReplica = nil
    probe?.close()
    lock?.release()
    lock = nil
  }

  private var isDisposed = false

  func replica() throws -> Replica {
    guard let openReplica, !isDisposed else {
      throw KizunaSyncError(.engineUnavailable, "the client was disposed")
    }
    if let lost { throw lost }
    return openReplica
  }

  func translating<Result>(_ body: () throws -> Result) throws -> Result {
    try StoreFailure.translating(path: settings.path, body)
  }

  // MARK: Events

  func raise(_ events: [KizunaSyncEngineEvent]) {
    for event in events { emit(event) }
  }

  func queueDepthEvent() throws -> KizunaSyncEngineEvent {
    .queueDepth(depth: UInt32(clamping: try translating { try replica().outboxDepth() }))
  }

  /// Raises what plain SQL's writes deserve once they are in the outbox, whichever transaction took them there; then does
  /// what nobody has to wait for.
  func raiseForeignChanges() throws {
    let replica = try replica()
    defer { replica.database.checkpointIfLong() }
    probe?.note(try translating { try replica.newestHarvested() }, schema: replica.schemaCookie)
    guard replica.foreignRows != reportedForeignRows else { return }
    reportedForeignRows = replica.foreignRows
    raise([.localChanged, try queueDepthEvent()])
  }

  private func noticeForeignCommit() {
    do {
      try followSchema()
      try translating { _ = try replica().harvestNow() }
      try raiseForeignChanges()
    } catch {
      if let replica = openReplica, !replica.missingSince.isEmpty {
        // A table that was dropped may come back by itself; if not, it is made again then.
        clock.schedule(after: Replica.grace) { [weak self] in Task { [weak self] in await self?.noticeForeignCommit() }
        }
      }
      // Busy or disposed: the next run harvests before it does anything else.
      log.debug("store.harvest_postponed", ["reason": .string("\(error)")])
    }
  }

  /// Called after each answer has been dealt with; nil ends it. For latency measurements.
  func setTrace(_ trace: (@Sendable (SyncTrace) -> Void)?) {
    self.trace = trace
  }

  func report(_ kind: SyncTrace.Kind, _ response: HTTPResponse, rows: Int, hasMore: Bool) throws {
    guard let trace else { return }
    trace(
      SyncTrace(
        kind: kind, requestSentAt: response.requestSentAt, responseReceivedAt: response.responseReceivedAt,
        committedAt: committedAt > 0 ? committedAt : SystemClock.monotonic, cursor: try replica().durableCursor(),
        rows: rows, hasMore: hasMore))
  }

  // MARK: Local reads and writes

  /// Reads on a connection of its own, beside whatever the engine is doing. Sees every committed write of any process.
  nonisolated func read<Result: Sendable>(_ body: @escaping @Sendable (ReadSession) throws -> Result) async throws
    -> Result
  {
    guard let reader else { return try await readInPlace(body) }
    return try await reader.read(body)
  }

  private func readInPlace<Result: Sendable>(_ body: @Sendable (ReadSession) throws -> Result) throws -> Result {
    try translating {
      let replica = try replica()
      let session = ReadSession(database: replica.database) { [unowned replica] in try replica.layout($0) }
      return try replica.database.snapshot { try body(session) }
    }
  }

  /// Runs reads and writes as one durable transaction. An error undoes all of it.
  ///
  /// Raises `.localChanged`, then `.queueDepth`, if anything was written.
  func write<Result: Sendable>(_ body: @Sendable (WriteSession) throws -> Result) throws -> Result {
    noticeFiles()
    let replica = try replica()
    let (result, writes) = try translating {
      try replica.localTransaction {
        let session = WriteSession(replica)
        let result = try body(session)
        return (result, session.writes)
      }
    }
    if writes > 0 { raise([.localChanged, try queueDepthEvent()]) }
    try raiseForeignChanges()
    return result
  }

  /// One write.
  /// - Returns: the key text of the row, minted where the write left it out.
  @discardableResult
  func apply(_ write: LocalWrite) throws -> String {
    try self.write { try $0.apply(write) }
  }

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
    answeredTroubleSince = nil
    raise([.localChanged])
  }

  // MARK: Identity and buckets

  /// Sets what is sent as bearer token. The first `sub` becomes the owner; a different one blocks sync until a reset.
  func setAccessToken(_ token: String?) throws {
    if token == self.token, token != nil, subject != nil { return try meetOwner() }
    self.token = token
    subject = token.flatMap(TokenSubject.read)
    try meetOwner()
  }

  private func meetOwner() throws {
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

  // MARK: Requests

  /// Runs `body` while no other request of this engine is under way.
  func exclusively<Result: Sendable>(
    _ body: (isolated SyncEngine) async throws -> Result
  ) async throws -> Result {
    await enterGate()
    defer { gate.leave() }
    try Task.checkCancellation()
    // The task prefers this thread meanwhile: whatever resumes it would otherwise pass the global pool on the way back.
    return try await withTaskExecutorPreference(thread) { try await body(self) }
  }

  private func enterGate() async {
    if gate.enter() { return }
    await withCheckedContinuation { gate.wait($0) }
  }

  /// Whether sync has anybody to talk to, is not blocked, and who the rows belong to.
  /// - Returns: false while blocked.
  func isReadyToSync() throws -> Bool {
    guard remote != nil else {
      throw KizunaSyncError(.engineUnavailable, "no server is configured, so there is nothing to sync with")
    }
    if try isOwnersAndOpen() { return true }
    // After a reset the owner is whoever is signed in.
    try meetOwner()
    return try translating { try !replica().checkpoint().softBlocked }
  }

  /// Whether the rows are the signed-in user's and sync is not blocked. False also when that has to be settled first.
  func isOwnersAndOpen() throws -> Bool {
    try translating {
      let database = try replica().database
      return try database.snapshot {
        if let subject, try database.meta(.owner).text != subject { return false }
        return try database.meta(.softBlock).isNull
      }
    }
  }

  /// Sends one request.
  /// - Throws: `RemoteFailure`, `CancellationError`.
  func call(_ function: String, body: [UInt8]) async throws -> HTTPResponse {
    guard let remote else { throw KizunaSyncError(.engineUnavailable, "no server is configured") }
    let token = try requireToken()
    // On this thread as well, so that no other one stands between the engine and the transport: naming the actor makes
    // the task inherit it, and the preference brings an answer straight back.
    let task = Task(executorPreference: thread) { [self] in
      assertIsolated()
      return try await remote.call(function, body: body, token: token)
    }
    inFlight = task
    defer { inFlight = nil }
    do {
      let response = try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
      lastFailure = nil
      return response
    } catch let failure as RemoteFailure {
      throw failed(failure)
    }
  }

  /// - Throws: `RemoteFailure`: without a user's token nothing is ever sent.
  @discardableResult
  func requireToken() throws -> String {
    if let token { return token }
    throw failed(
      RemoteFailure(
        .noSession,
        KizunaSyncError(.remote, "AUTH_SESSION_MISSING: nobody is signed in; set an access token and try again")))
  }

  func failed(_ failure: RemoteFailure) -> RemoteFailure {
    lastFailure = failure
    return failure
  }
}
