import HTTPClient
import HostKit
import KizunaSync
import SupabaseSession

/// A client and the session whose tokens it uses: what `run` and `sync` have in common.
final class SignedInClient: Sendable {
  let configuration: GatewayConfiguration
  let client: KizunaSyncClient
  let session: SupabaseSession
  let http: ObservedHTTP
  private let log: HostLog
  /// The token the client has. Handing it over again would cost two changes of threads before every run.
  private let known = Locked<String?>(nil)

  init(_ configuration: GatewayConfiguration, parts: GatewayParts, log: HostLog) {
    self.configuration = configuration
    self.log = log
    http = ObservedHTTP(parts.http)
    client = KizunaSyncClient(http: http, clock: parts.clock, log: log)
    session = configuration.makeSession(
      http: parts.http, stateFile: configuration.sessionFile, clock: parts.clock, log: log)
    http.onServerDate { [session] in session.noteServerDate($0) }
  }

  /// Locks and opens the database. Before anything else: the lock also guards the session's file.
  func open() async throws(GatewayError) {
    do {
      try await client.create(configuration.clientConfiguration)
      let buckets = configuration.buckets
      if !buckets.isEmpty { try await client.setBucket(buckets.mapValues(Self.plain)) }
    } catch let error as KizunaSyncError {
      if KizunaSyncReplicaStatus.isHeld(error) { throw GatewayError(.locked, error.message) }
      throw GatewayError(error, last: http.last)
    } catch {
      throw GatewayError(.other, "\(error)")
    }
  }

  private static func plain(_ value: JSONValue) -> Any {
    switch value {
    case .string(let text): text
    case .bool(let flag): flag
    case .number(let number): number.int64.map { Int($0) } ?? number.double
    case .null, .array, .object: value.description
    }
  }

  /// Gets a token that is good now and gives it to the client.
  func signIn() async throws(GatewayError) {
    do {
      let token = try await session.accessToken().value
      guard known.withLock({ $0 }) != token else { return }
      // Signing in as somebody else by mistake must not block the database: its owner comes back with a correct one.
      if try await client.belongsToAnother(token) { throw GatewayError(.configuration, SoftBlock.anotherUser) }
      try await client.setAccessToken(token)
      known.withLock { $0 = token }
    } catch let failure as SessionFailure {
      throw GatewayError(failure)
    } catch let error as KizunaSyncError {
      throw GatewayError(error, last: http.last)
    } catch let error as GatewayError {
      throw error
    } catch {
      throw GatewayError(.other, "\(error)")
    }
  }

  /// One push and pull. A token the server refuses is reported to the session, which gets another.
  ///
  /// Until the server has taken the credentials once, a refusal is answered at once with the session's next token: the
  /// first one may come from an earlier process. Later refusals end the run, and the next one has a new token.
  /// - Throws: `KizunaSyncError`, `CancellationError`, and on the first use of the credentials `GatewayError`.
  func sync() async throws {
    do {
      try await attempt()
    } catch let error as KizunaSyncError {
      guard isRefused(error), !http.wasAccepted else { throw error }
      let refusal = GatewayError(error, last: http.last)
      do throws(GatewayError) {
        try await signIn()
      } catch {
        // That there is no other token is no news; why this one was refused is.
        throw error.kind == .authentication ? refusal : error
      }
      try await attempt()
    }
  }

  private func attempt() async throws {
    let token = session.currentToken
    http.forget()
    do {
      try await client.sync()
    } catch {
      if isRefused(error), let token { await session.invalidate(token.value) }
      throw error
    }
  }

  private func isRefused(_ error: any Error) -> Bool {
    error is KizunaSyncError && http.last?.refusal != nil
  }

  /// Whether a run ended because the server refused the credentials on their very first use in this process. Nothing has
  /// shown then that they are worth waiting for.
  func isRefusedFromTheStart(_ error: GatewayError) -> Bool {
    error.kind == .authentication && !http.wasAccepted
  }

  /// Ends the client, then the session.
  func close() async {
    await client.dispose()
    await session.stop()
  }
}
