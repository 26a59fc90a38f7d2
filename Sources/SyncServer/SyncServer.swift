import HostKit

/// A sync server in memory: `pull` and `push` as functions, other devices' writes, and a report of every commit.
///
/// It runs on a thread of its own, so a journal may write to disk from within a commit. Commits are reported one after
/// the other in seq order, before the call that made them returns.
public actor SyncServer {
  /// Writes a commit down before anyone learns of it. When it throws, the transaction is taken back and the caller gets
  /// an error.
  public typealias Journal = @Sendable (SyncCommit) throws -> Void
  public typealias CommitHandler = @Sendable (SyncCommit) -> Void

  /// The thread the server runs on.
  public nonisolated let thread: SerialThread
  private var state: SyncServerState
  private let wallMilliseconds: @Sendable () -> Int64
  private let journal: Journal?
  private var handlers: [Int: CommitHandler] = [:]
  private var nextHandler = 0
  private var commitTimes = CommitTimes(capacity: 100_000)

  public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  /// - Parameters:
  ///   - thread: nil starts one for this server, which ends with it.
  ///   - wallMilliseconds: the calendar time that deletions are stamped with.
  public init(
    state: SyncServerState, thread: SerialThread? = nil,
    wallMilliseconds: @escaping @Sendable () -> Int64 = { SystemClock.shared.wallMilliseconds },
    journal: Journal? = nil
  ) {
    self.state = state
    self.thread = thread ?? SerialThread(name: "kizuna-server")
    self.wallMilliseconds = wallMilliseconds
    self.journal = journal
    ownsThread = thread == nil
  }

  private let ownsThread: Bool

  public init(
    configuration: SyncServerConfiguration, firstSeq: Int64 = 1,
    wallMilliseconds: @escaping @Sendable () -> Int64 = { SystemClock.shared.wallMilliseconds }
  ) {
    self.init(
      state: SyncServerState(configuration: configuration, firstSeq: firstSeq), wallMilliseconds: wallMilliseconds)
  }

  deinit {
    if ownsThread { thread.stop() }
  }

  // MARK: Remote procedures

  /// `kizunasync.pull` (Kizuna wire contract §4).
  ///
  /// - Parameter body: the request body as it came.
  public func pull(_ body: JSONValue, caller: Caller) -> RPCAnswer {
    answer { $0.answerPull(body, caller) }
  }

  /// `kizunasync.push` (Kizuna wire contract §5).
  public func push(_ body: JSONValue, caller: Caller) -> RPCAnswer {
    let now = wallMilliseconds()
    return answer { $0.answerPush(body, caller, now) }
  }

  private func answer(_ body: (inout SyncServerState) -> RPCAnswer) -> RPCAnswer {
    do throws(RPCError) {
      return try committing { state throws(RPCError) in body(&state) }
    } catch {
      return .failure(error)
    }
  }

  // MARK: Other devices

  /// Makes writes of another device as one transaction, past every access rule. One commit is reported.
  ///
  /// - Throws: as `SyncServerState.apply`, and `53100` when the journal refuses the commit. Nothing is changed then.
  public func apply(_ writes: [SyncWrite]) throws(RPCError) {
    let now = wallMilliseconds()
    try committing { state throws(RPCError) in try state.perform(writes, now: now) }
  }

  /// Merges columns into a row as another device would.
  public func upsert(_ table: String, _ pk: String, _ columns: [String: JSONValue], hlc: String? = nil)
    throws(RPCError)
  {
    try apply([.upsert(table: table, pk: pk, columns: columns, hlc: hlc)])
  }

  /// Deletes a row as another device would.
  public func delete(_ table: String, _ pk: String) throws(RPCError) {
    try apply([.delete(table: table, pk: pk)])
  }

  /// Drops every tombstone and raises the reap horizon, so that older checkpoints are expired.
  public func reap() throws(RPCError) {
    try committing { state throws(RPCError) in state.dropTombstones(now: nil) }
  }

  /// Drops tombstones and verdicts that are older than their time to live.
  public func maintain() throws(RPCError) {
    let now = wallMilliseconds()
    try committing { state throws(RPCError) in
      state.dropTombstones(now: now)
      state.pruneLedger(now: now)
    }
  }

  // MARK: Looking inside

  /// A live row's cells as the server holds them.
  public func row(_ table: String, _ pk: String) -> [String: JSONValue]? { state.row(table, pk) }

  public func rowCount(_ table: String) -> Int { state.rowCount(table) }

  /// The highest committed seq.
  public var horizon: Int64 { state.horizon }

  /// The whole state as stable text; see `SyncServerState.dump`.
  public func dump() -> String { state.dump() }

  /// The state at this moment. A copy costs nothing until the server changes again.
  public func snapshot() -> SyncServerState { state }

  /// Puts the server back, as a restored backup would. Not journalled, nobody is rung.
  public func restore(_ snapshot: SyncServerState) { state = snapshot }

  /// When each seq above `seq` was committed, `CLOCK_MONOTONIC` nanoseconds; the last 100,000 are kept.
  public func commitTimes(after seq: Int64) -> [(seq: Int64, at: UInt64)] { commitTimes.after(seq) }

  // MARK: Commits

  /// Calls `handler` on the server's thread after every commit that follows.
  ///
  /// - Returns: what `removeCommitHandler` takes.
  @discardableResult
  public func onCommit(_ handler: @escaping CommitHandler) -> Int {
    defer { nextHandler += 1 }
    handlers[nextHandler] = handler
    return nextHandler
  }

  public func removeCommitHandler(_ id: Int) { handlers[id] = nil }

  /// Runs one transaction, journals it and reports it.
  private func committing<Result>(
    _ body: (inout SyncServerState) throws(RPCError) -> Result
  ) throws(RPCError) -> Result {
    let before = state.nextSeq
    let result = try body(&state)
    guard !state.changes.isEmpty else { return result }
    let commit = SyncCommit(
      changes: state.changes, before: before, after: state.nextSeq, committedAt: SystemClock.monotonic)
    if let journal {
      do {
        try journal(commit)
      } catch {
        state.rollback(to: 0)
        throw RPCError("53100", "the server could not write its journal")
      }
    }
    state.endTransaction()
    commitTimes.record(commit)
    for (_, handler) in handlers.sorted(by: { $0.key < $1.key }) { handler(commit) }
    return result
  }
}
