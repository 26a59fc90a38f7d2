import Foundation
import HTTPClient
import HostKit

/// A local SQLite replica of synced tables, and the conversation with the server that keeps it fresh.
///
/// One client holds one database file. ``create(_:)`` opens it; reads and writes answer from the file and reach no
/// network; ``sync()`` pushes and pulls, usually called by a ``KizunaSyncScheduler``. Every member may be called from any
/// thread or actor; the work happens on threads the client owns.
///
/// Every error is a ``KizunaSyncError`` (`ENGINE_UNAVAILABLE` before `create` and after `dispose`), except that a
/// cancelled call throws `CancellationError`: it stops at the next safe point, and what the server had decided by then
/// is kept.
public final class KizunaSyncClient: @unchecked Sendable {  // everything mutable is behind `state`
  private struct State: Sendable {
    var engine: SyncEngine?
    var tables: Set<String> = []
    /// The HTTP client this one made for itself.
    var ownHTTP: CurlHTTPClient?
    var trace: (@Sendable (SyncTrace) -> Void)?
    var unread: (@Sendable () -> Void)?
    var inspector: KizunaSyncInspector?
    var onFileLost: [@Sendable (KizunaSyncError) -> Void] = []
    /// Why the engine can do nothing any more.
    var fileLost: KizunaSyncError?
  }

  private let state = Locked(State())
  private let events = EventHub()
  private let lifecycle = AsyncGate()
  private let givenHTTP: (any HTTPTransport)?
  let clock: any HostClock
  private let log: HostLog
  private let server = ServerAddress()

  /// A client on the real network and clock that logs nothing.
  public convenience init() {
    self.init(http: ClientDefaults.http, clock: SystemClock.shared, log: .none)
  }

  /// - Parameters:
  ///   - http: what requests are sent with; nil makes an HTTP client of its own, which ends with the client.
  ///   - clock: what times and waits are taken from.
  ///   - log: where it writes what happened. Never tokens, keys, addresses or row values.
  public init(http: (any HTTPTransport)?, clock: any HostClock = SystemClock.shared, log: HostLog = .none) {
    givenHTTP = http
    self.clock = clock
    self.log = log
  }

  deinit {
    let (engine, http) = state.withLock { ($0.engine, $0.ownHTTP) }
    guard engine != nil || http != nil else { return }
    // A client that is let go without `dispose` must not leave its threads and its lock behind.
    Task.detached {
      await engine?.dispose()
      await http?.shutdown()
    }
  }

  // MARK: Life

  /// Opens the database and makes what it lacks. Needs no session and no network.
  ///
  /// Called again, it replaces the engine: the old one is closed first and its subscriptions end.
  /// - Throws: `CONFIG_INVALID`, which names everything that is wrong; `ATTACHMENT_PORTS_MISSING` for attachments without
  ///   a root; `STORE_UNAVAILABLE` when the file cannot be opened or another process holds it.
  public func create(_ config: KizunaSyncClientConfig) async throws {
    try ConfigurationCheck.check(config)
    try await lifecycle.run {
      await self.end()
      let engine = try await SyncEngine.open(
        config: config, http: self.transport(), clock: self.clock, log: self.log,
        emit: { [events = self.events] in events.emit($0) },
        onLoss: { [weak self] in self?.lost($0) })
      self.server.configure(url: config.remote?.url)
      let (trace, unread) = self.state.withLock { state in
        state.engine = engine
        state.tables = Set(config.tables.keys)
        return (state.trace, state.unread)
      }
      if let trace { await engine.setTrace(trace) }
      if let unread { await engine.setUnread(unread) }
      self.state.withLock { $0.inspector }?.follow()
    }
  }

  /// Ends the client: a request in flight is cut off and its writes stay queued, the file is closed. When this returns no
  /// request, transaction or thread of the client is left and the file may be deleted. Idempotent.
  public func dispose() async {
    await lifecycle.run {
      await self.end()
      let http = self.state.withLock { state -> CurlHTTPClient? in
        defer { state.ownHTTP = nil }
        return state.ownHTTP
      }
      await http?.shutdown()
      await self.events.shutDown()
    }
  }

  private func end() async {
    let engine = state.withLock { state -> SyncEngine? in
      defer {
        state.engine = nil
        state.tables = []
        state.fileLost = nil
      }
      return state.engine
    }
    events.endAll()
    await engine?.dispose()
  }

  private func transport() -> any HTTPTransport {
    if let givenHTTP { return PeerNotingTransport(inner: givenHTTP, server: server) }
    let own = state.withLock { state -> CurlHTTPClient in
      let own = state.ownHTTP ?? CurlHTTPClient()
      state.ownHTTP = own
      return own
    }
    return PeerNotingTransport(inner: own, server: server)
  }

  func engine() throws -> SyncEngine {
    guard let engine = state.withLock({ $0.engine }) else {
      throw KizunaSyncError(.engineUnavailable, "the client is not open; call create first")
    }
    return engine
  }

  /// The thread that a task should run on which does little else than call this client; nil while it is not open.
  var executorPreference: (any TaskExecutor)? { state.withLock { $0.engine }?.thread }

  // MARK: Tables

  /// One configured table.
  /// - Throws: `UNKNOWN_TABLE` at once.
  public func from(_ table: String) throws -> KizunaSyncTable {
    _ = try engine()
    guard state.withLock({ $0.tables.contains(table) }) else {
      throw KizunaSyncError(.unknownTable, "the table \(table) is not configured")
    }
    return KizunaSyncTable(client: self, name: table)
  }

  /// Writes one row and queues it.
  /// - Parameters:
  ///   - pk: the key text of the row; a composite key as a JSON array of its parts.
  ///   - mutationId: a uuid that identifies the write on the server; nil mints one.
  ///   - transforms: column → transform, updates only.
  ///   - precondition: column → the value the server must find.
  /// - Throws: `LOCAL_UNSUPPORTED` for an empty table or key, `LOCAL_CONSTRAINT` for a mutation id that is queued already
  ///   or a key that exists, `SOFT_DELETE_VIOLATION` for a delete on a soft-delete table.
  public func apply(
    table: String, pk: String, op: KizunaSyncOp, columns: [String: Any] = [:], mutationId: String? = nil,
    transforms: [String: Any]? = nil, precondition: [String: Any]? = nil
  ) async throws {
    _ = try engine()
    guard !table.isEmpty, !pk.isEmpty else {
      throw KizunaSyncError(.localUnsupported, "a write needs a table and a key")
    }
    if let mutationId, !RandomUUID.isWellFormed(mutationId) {
      throw KizunaSyncError(.localUnsupported, "a mutation id must be a uuid")
    }
    let write = LocalWrite(
      table: table, pk: pk, op: op, columns: try PlainValue.json(from: columns, at: table),
      transforms: try transforms.map { try PlainValue.json(from: $0, at: table) },
      precondition: try precondition.map { try PlainValue.json(from: $0, at: table) }, mutationID: mutationId)
    try await apply(write)
  }

  /// Writes every row the filters match, as one local transaction.
  /// - Parameter filters: nodes as ``KizunaSyncQuery`` makes them; all must hold.
  /// - Returns: the keys of the rows, in order.
  /// - Throws: `LOCAL_UNSUPPORTED` without a filter that names rows.
  public func applyWhere(
    table: String, op: KizunaSyncOp, filters: [[String: Any]], columns: [String: Any] = [:],
    transforms: [String: Any]? = nil, precondition: [String: Any]? = nil
  ) async throws -> [String] {
    _ = try engine()
    let write = MatchingWrite(
      table: table, op: op,
      filter: .and(
        try filters.map { try QueryPlanParser.predicate(PlainValue.json(from: $0, at: "filters")) }),
      columns: try PlainValue.json(from: columns, at: table),
      transforms: try transforms.map { try PlainValue.json(from: $0, at: table) },
      precondition: try precondition.map { try PlainValue.json(from: $0, at: table) })
    return try await self.write(write, returning: .nothing).pks
  }

  /// Reads with a plan, as ``KizunaSyncQuery/plan(filters:order:limit:projection:cardinality:includeDeleted:)`` makes it.
  /// - Returns: `[[String: Any]]`; for `single` a row; for `maybeSingle` a row or `NSNull`; with `count`
  ///   `["rows": …, "count": n]`.
  public func query(table: String, plan: [String: Any] = [:]) async throws -> Any {
    _ = try engine()
    let parsed = try QueryPlanParser.plan(PlainValue.json(from: plan, at: "plan"))
    let answer = try await self.answer(parsed, table: table)
    let rows: Any =
      switch parsed.cardinality {
      case .many: RowShape.rows(answer.rows, stripNulls: false)
      case .single, .maybeSingle: answer.rows.first.map { RowShape.row($0, stripNulls: false) } ?? NSNull()
      }
    guard let count = answer.count else { return rows }
    return ["rows": rows, "count": count]
  }

  // MARK: Sync

  /// Pushes until the queue is empty, then pulls to the checkpoint. Blocked, it returns normally without a request.
  /// - Throws: `REMOTE` when the server cannot be reached or nobody is signed in, `PERMANENT_TRANSPORT` when it refused
  ///   the request itself, `BUCKET_UNSET` when a table's bucket has no value.
  public func sync() async throws {
    try await engine().sync()
  }

  /// One pull request.
  public func pullOnce() async throws {
    try await engine().pullOnce()
  }

  /// One push request.
  public func pushOnce() async throws {
    try await engine().pushOnce()
  }

  /// Writes that are queued and not yet decided, those of other processes included.
  public func outboxDepth() async throws -> Int {
    try await engine().outboxDepth()
  }

  /// Sets what requests are signed with. The first token's `sub` becomes the owner of the database; a different one
  /// blocks sync with `identity_changed` until ``reset()``. nil signs out and changes no identity.
  public func setAccessToken(_ token: String?) async throws {
    try await engine().setAccessToken(token)
  }

  /// Whether ``setAccessToken(_:)`` would block sync with `identity_changed`: for hosts that rather do without.
  package func belongsToAnother(_ token: String) async throws -> Bool {
    try await engine().belongsToAnother(token)
  }

  /// Sets the values of bucket columns; a changed value reads everything again.
  /// - Throws: `BUCKET_UNSET` for a column that is no table's bucket column.
  public func setBucket(_ params: [String: Any]) async throws {
    try await engine().setBucket(PlainValue.json(from: params, at: "bucket"))
  }

  /// Where the replica stands.
  public func checkpoint() async throws -> KizunaSyncCheckpoint {
    try await engine().checkpoint()
  }

  /// Sets the durable cursor without pulling.
  public func seedCheckpoint(_ cursor: String) async throws {
    try await engine().seedCheckpoint(cursor)
  }

  /// Empties the replica, also of writes that were never sent, lifts a block and takes a new client id. Raises no
  /// `queueDepth`: wake the scheduler afterwards.
  /// - Returns: paths of attachments the app may delete; always empty here.
  public func reset() async throws -> [String] {
    try await engine().reset()
    return []
  }

  // MARK: Events and journals

  /// Calls `handler` for every event, in order, on one thread the client owns. The handler may call the client back; one
  /// that takes long delays those behind it.
  /// - Returns: a closure that ends the calls, for any thread. Another ``create(_:)`` ends them too.
  public func on(
    _ handler: @escaping @Sendable (KizunaSyncEngineEvent) -> Void
  ) async throws -> @Sendable () -> Void {
    try subscribe(handler)
  }

  /// `on`, without suspending.
  func subscribe(_ handler: @escaping @Sendable (KizunaSyncEngineEvent) -> Void) throws -> @Sendable () -> Void {
    _ = try engine()
    return events.subscribe(handler)
  }

  /// Calls `handler` when the client can do nothing any more because its database was deleted, moved away or replaced, or
  /// its lock was lost. Every other call throws the same error from then on; ``dispose()``, and create again.
  ///
  /// For all databases this client opens; at once when that has happened already. The handler is called on a thread of the
  /// client and must not block.
  public func onFileLost(_ handler: @escaping @Sendable (KizunaSyncError) -> Void) {
    let known = state.withLock { state in
      state.onFileLost.append(handler)
      return state.fileLost
    }
    if let known { handler(known) }
  }

  private func lost(_ error: KizunaSyncError) {
    let handlers = state.withLock { state in
      state.fileLost = error
      return state.onFileLost
    }
    for handler in handlers { handler(error) }
  }

  /// Writes the server did not take.
  public func rejections(includeDismissed: Bool = false) async throws -> [KizunaSyncRejection] {
    try await engine().rejections(includeDismissed: includeDismissed)
  }

  /// - Returns: false when no such entry is held.
  public func dismissRejection(_ mutationId: String) async throws -> Bool {
    try await engine().dismissRejection(mutationId)
  }

  /// Queues a write the server did not take again, as the newest of its row: the columns it would have written, over the
  /// row as it is now. The entry leaves the journal; ``dismissRejection(_:)`` gives it up instead.
  ///
  /// A dead letter keeps its mutation id, because it was never decided; a write that was decided gets a new one. What was
  /// all-or-nothing stays so.
  /// - Returns: the ids under which it is queued, one for each member of what was all-or-nothing; empty when no such entry
  ///   is held.
  /// - Throws: `UNKNOWN_TABLE`, `LOCAL_UNSUPPORTED` for a table that has become pull-only, `LOCAL_CONSTRAINT` when a
  ///   constraint of the database refuses the row now. Nothing is changed then.
  @discardableResult
  public func retryRejection(_ mutationId: String) async throws -> [String] {
    try await engine().retryRejection(mutationId)
  }

  /// Values that peers' writes replaced, newest first.
  public func overwrites(includeDismissed: Bool = false) async throws -> [KizunaSyncOverwrite] {
    try await engine().overwrites(includeDismissed: includeDismissed)
  }

  /// - Returns: false when no such entry is held.
  @discardableResult
  public func dismissOverwrite(_ id: Int64) async throws -> Bool {
    try await engine().dismissOverwrite(id)
  }

  // MARK: Inspection

  /// `queued`, `depth`, `last_mutation_id`, `cursor` and `client_id`.
  public func inspect() async throws -> [String: Any] {
    try await engine().inspect().mapValues(PlainValue.any(from:))
  }

  /// One inspector per client.
  public func inspector() async throws -> KizunaSyncInspector {
    _ = try engine()
    let fresh = KizunaSyncInspector(client: self)
    let (inspector, isNew) = state.withLock { state in
      if let known = state.inspector { return (known, false) }
      state.inspector = fresh
      return (fresh, true)
    }
    if isNew { inspector.follow() }
    return inspector
  }

  /// Called after each answer has been dealt with, also by engines opened later; nil ends it. For latency measurements.
  package func setTrace(_ trace: (@Sendable (SyncTrace) -> Void)?) async {
    let engine = state.withLock { state in
      state.trace = trace
      return state.engine
    }
    await engine?.setTrace(trace)
  }

  /// Called when a table has to be read again from the server though nobody wrote anything, also by engines opened later.
  package func setUnread(_ handler: (@Sendable () -> Void)?) async {
    let engine = state.withLock { state in
      state.unread = handler
      return state.engine
    }
    await engine?.setUnread(handler)
  }

  /// Where the last answer came from, for the path monitor.
  var serverAddress: IPAddress? { server.current }

  // MARK: For tables and builders

  @discardableResult
  func apply(_ write: LocalWrite) async throws -> String {
    try await engine().apply(write)
  }

  func answer(_ plan: QueryPlan, table: String) async throws -> QueryAnswer {
    try await engine().read { session in
      try QueryRunner(database: session.database, layout: session.layout(table)).answer(plan)
    }
  }

  func write(_ write: MatchingWrite, returning: MatchingWrite.Returning) async throws -> MatchingWrite.Result {
    let clock = clock
    return try await engine().write { session in
      try write.perform(in: session, clock: clock, returning: returning)
    }
  }
}
