import Glibc
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
  /// When a run ended well and nobody wrote it down yet.
  var unwrittenSuccess: Int64?
  private(set) var lock: DatabaseLock?
  private(set) var files: DatabaseFileGuard?
  /// Why nothing can be done any more: the files are not there, or no longer this engine's.
  var lost: KizunaSyncError?
  let onLoss: @Sendable (KizunaSyncError) -> Void
  /// Called when the next sync has rows to read again that nothing else asks for; nil calls nobody.
  private var onUnread: (@Sendable () -> Void)?
  private var watcher: ForeignCommitWatcher?
  private let probe: JournalProbe?
  private var gate = RequestGate()
  private(set) var inFlight: Task<HTTPResponse, any Error>?
  private var trace: (@Sendable (SyncTrace) -> Void)?
  var token: String?
  var subject: String?
  /// When the answer at hand was committed, `CLOCK_MONOTONIC`; 0 while that is not known better.
  var committedAt: UInt64 = 0
  var bucketValues: [String: JSONValue] = [:]
  var clockWatch = ClockWatch()
  /// When the next visibility sweep is due, on `clock`; nil for never.
  var nextSweep: UInt64?
  private var reportedForeignRows = 0

  var pageLimit: PageLimit
  var pushPolicy = PushPolicy()
  /// How far the table has come that is read again alone; the next run goes on there.
  var rereading: Rereading?
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
    var isLockNew = false
    if let path = settings.path, let problem = DatabaseFiles.problem(with: path) {
      throw KizunaSyncError(.storeUnavailable, problem)
    }
    if let path = settings.path, remote != nil {
      let files = DatabaseFiles(path)
      isLockNew = access(files.lock, F_OK) != 0
      do {
        lock = try DatabaseLock(database: path)
      } catch .unavailable(_, ENOENT) {
        throw KizunaSyncError(
          .storeUnavailable, "no file can be made in \(files.directory); name another path for the database")
      } catch {
        throw KizunaSyncError(.storeUnavailable, error.description)
      }
    }
    try translating {
      do { openReplica = try Replica(settings, clock: clock, log: log) } catch {
        // No replica came of it, so nothing that belongs to one stays beside somebody's file. The lock is still held.
        if isLockNew, let path = settings.path { unlink(DatabaseFiles(path).lock) }
        throw error
      }
      let replica = try replica()
      if let path = settings.path, lock != nil { try replica.recogniseInstance(besides: InstanceFile(path)) }
    }
    // Before the first harvest: it fills in the owner.
    if let token = config.remote?.accessToken { try noteAccessToken(token) }
    try translating {
      let replica = try replica()
      try replica.harvestNow()
      try replica.takeQueueForSent()
      try replica.fillFromQueue()
      reportedForeignRows = replica.foreignRows
      probe?.note(try replica.newestHarvested(), schema: replica.schemaCookie)
    }
    try planSweep()
    try raise(takeRefusals() + [.localChanged, queueDepthEvent()])
    if let path = settings.path, let probe {
      let files = DatabaseFileGuard(path: path)
      self.files = files
      if openReplica?.database.hasMoved == true {
        throw KizunaSyncError(.store, files.sentence(.init(part: .database, manner: .replaced), unsent: 0))
      }
      do {
        watcher = try ForeignCommitWatcher(database: path) { [weak self] in
          guard probe.hasNews() else { return }
          Task { [weak self] in await self?.noticeForeignCommit() }
        }
        try files.watch { [weak self] in Task { [weak self] in await self?.noticeFiles() } }
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
    // From here on a copy that was taken until now is another file than this one.
    if let path = settings.path, lock != nil, lost == nil {
      if let unwrittenSuccess { try? openReplica?.noteLastSync(unwrittenSuccess) }
      try? openReplica?.renewInstance(InstanceFile(path))
    }
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
    raise(try takeRefusals() + [.localChanged, try queueDepthEvent()])
  }

  /// What the harvest refused, to be raised.
  private func takeRefusals() throws -> [KizunaSyncEngineEvent] {
    let replica = try replica()
    defer { replica.refusals = [] }
    return replica.refusals
  }

  private func noticeForeignCommit() {
    do {
      try followSchema()
      if try translating({ try replica().nextReread() }) != nil { onUnread?() }
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

  func setUnread(_ handler: (@Sendable () -> Void)?) {
    onUnread = handler
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
  func call(
    _ function: String, body: [UInt8], tables: [String], keepsHead: Bool = false
  ) async throws -> HTTPResponse {
    guard let remote else { throw KizunaSyncError(.engineUnavailable, "no server is configured") }
    let token = try requireToken()
    // On this thread as well, so that no other one stands between the engine and the transport: naming the actor makes
    // the task inherit it, and the preference brings an answer straight back.
    let task = Task(executorPreference: thread) { [self] in
      assertIsolated()
      return try await remote.call(function, body: body, token: token, tables: tables, keepsHead: keepsHead)
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
      noteServerDate(of: response)
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
