import HostKit
import KizunaSync

/// What one push and pull came to.
public struct SyncSummary: Sendable, Hashable {
  /// Writes that the server has not decided yet.
  public var outboxDepth: Int
  /// Writes that it refused during this sync.
  public var rejected: Int
  /// Refused writes that nobody has retried or discarded, those of earlier syncs included.
  public var refused: Int { leftovers.refused }
  /// Rows of the server that a constraint of the database refuses.
  public var parkedRows: Int { leftovers.parkedRows }
  /// Tables that cannot take rows as they are.
  public var tablesSetAside: [String] { leftovers.tablesSetAside }
  /// Writes, by table, of tables that are not configured.
  public var heldWrites: [String: Int] { leftovers.heldWrites }
  public var cursor: String
  /// Why nothing was sent: `reset_required` or `identity_changed`.
  public var softBlock: String?
  /// Nanoseconds.
  public var duration: UInt64

  package var leftovers: SyncLeftovers

  /// Whether every write was delivered, every row taken, and nothing stands in the way of the next ones.
  public var isDelivered: Bool { outboxDepth == 0 && rejected == 0 && softBlock == nil && leftovers.isEmpty }
}

/// One push and pull, for hosts that synchronise now and then instead of all the time.
public enum SingleSync {
  /// Locks and opens the database, signs in, pushes until the queue is empty and pulls to the end.
  ///
  /// - Throws: `GatewayError`; what was not delivered stays queued.
  public static func run(
    _ configuration: GatewayConfiguration, parts: GatewayParts? = nil, log: HostLog = .none
  ) async throws(GatewayError) -> SyncSummary {
    let parts = parts ?? .live(authorityFile: configuration.authorityFile)
    let signedIn = SignedInClient(configuration, parts: parts, log: log)
    let recorder = RunRecorder(database: configuration.database, clock: parts.clock, log: log)
    let result: Result<SyncSummary, GatewayError>
    do throws(GatewayError) {
      result = .success(try await run(signedIn, recorder, log))
    } catch {
      result = .failure(error)
    }
    // While the lock is held: nobody else may write the record.
    await recorder.end()
    await signedIn.close()
    await parts.shutdown()
    return try result.get()
  }

  private static func run(
    _ signedIn: SignedInClient, _ recorder: RunRecorder, _ log: HostLog
  ) async throws(GatewayError) -> SyncSummary {
    let started = SystemClock.monotonic
    try await signedIn.open()
    recorder.begin(.brief)
    do {
      try await signedIn.signIn()
      let client = signedIn.client
      let known = Set(try await client.rejections(includeDismissed: true).map(\.mutationId))
      try await signedIn.sync()
      let checkpoint = try await client.checkpoint()
      let refused = try await client.rejections(includeDismissed: true).filter { !known.contains($0.mutationId) }
      for rejection in refused { SyncEventLines.line(for: rejection).write(to: log) }
      let summary = SyncSummary(
        outboxDepth: try await client.outboxDepth(), rejected: refused.count, cursor: checkpoint.cursor,
        softBlock: checkpoint.softBlocked ? checkpoint.softBlockReason ?? "blocked" : nil,
        duration: SystemClock.monotonic - started, leftovers: try await client.leftovers())
      recorder.succeeded(startedAt: started, isBlocked: checkpoint.softBlocked)
      return summary
    } catch is CancellationError {
      throw GatewayError(.other, "interrupted")
    } catch {
      let failure = GatewayError(run: error, last: signedIn.http.last)
      recorder.failed(startedAt: started, failure, code: (error as? KizunaSyncError)?.code)
      throw failure
    }
  }
}
