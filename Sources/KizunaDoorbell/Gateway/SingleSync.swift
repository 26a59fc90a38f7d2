import HostKit
import KizunaSync

/// What one push and pull came to.
public struct SyncSummary: Sendable, Hashable {
  /// Writes that the server has not decided yet.
  public var outboxDepth: Int
  /// Writes that it refused during this sync.
  public var rejected: Int
  public var cursor: String
  /// Why nothing was sent: `reset_required` or `identity_changed`.
  public var softBlock: String?
  /// Nanoseconds.
  public var duration: UInt64

  /// Whether every write was delivered and nothing stands in the way of the next ones.
  public var isDelivered: Bool { outboxDepth == 0 && rejected == 0 && softBlock == nil }
}

/// One push and pull, for hosts that synchronise now and then instead of all the time.
public enum SingleSync {
  /// Locks and opens the database, signs in, pushes until the queue is empty and pulls to the end.
  ///
  /// - Throws: `GatewayError`; what was not delivered stays queued.
  public static func run(
    _ configuration: GatewayConfiguration, parts: GatewayParts? = nil, log: HostLog = .none
  ) async throws(GatewayError) -> SyncSummary {
    let parts = parts ?? .live()
    let signedIn = SignedInClient(configuration, parts: parts, log: log)
    let result: Result<SyncSummary, GatewayError>
    do throws(GatewayError) {
      result = .success(try await run(signedIn))
    } catch {
      result = .failure(error)
    }
    await signedIn.close()
    await parts.shutdown()
    return try result.get()
  }

  private static func run(_ signedIn: SignedInClient) async throws(GatewayError) -> SyncSummary {
    let started = SystemClock.monotonic
    try await signedIn.open()
    try await signedIn.signIn()
    do {
      let client = signedIn.client
      let known = Set(try await client.rejections(includeDismissed: true).map(\.mutationId))
      try await sync(signedIn)
      let checkpoint = try await client.checkpoint()
      let refused = try await client.rejections(includeDismissed: true).filter { !known.contains($0.mutationId) }
      return SyncSummary(
        outboxDepth: try await client.outboxDepth(), rejected: refused.count, cursor: checkpoint.cursor,
        softBlock: checkpoint.softBlocked ? checkpoint.softBlockReason ?? "blocked" : nil,
        duration: SystemClock.monotonic - started)
    } catch let error as KizunaSyncError {
      throw GatewayError(error, last: signedIn.http.last)
    } catch let error as GatewayError {
      throw error
    } catch {
      throw GatewayError(.other, "\(error)")
    }
  }

  /// Once more with a fresh token when the server refused the first one.
  private static func sync(_ signedIn: SignedInClient) async throws {
    do {
      try await signedIn.sync()
    } catch let error as KizunaSyncError {
      guard GatewayError(error, last: signedIn.http.last).kind == .authentication else { throw error }
      try await signedIn.signIn()
      try await signedIn.sync()
    }
  }
}
