import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import SupabaseSession

/// How a session ends, and what it leaves behind.
extension SupabaseSessionTests {
  @Test func aCallerThatGivesUpLeavesTheRequestToTheOthers() async throws {
    server.hold()
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    let patient = Task { try await session.accessToken().value }
    let hasty = Task { try await session.accessToken().value }
    await clock.settle()
    hasty.cancel()
    await #expect(throws: CancellationError.self) { try await hasty.value }
    server.release()
    #expect(try await patient.value == AuthServer.token("one"))
    #expect(server.requests.count == 1)
    await session.stop()
  }

  @Test func stopFailsWhoWaitsAndLeavesNothingArmed() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    let told = Told()
    let subscription = session.onToken { told.add($0) }
    _ = try await session.accessToken()
    server.hold()
    let waiting = Task { try await session.accessToken(refresh: true).value }
    await clock.settle()
    let stopping = Task { await session.stop() }
    await #expect(throws: SessionFailure(.stopped, "the session was stopped")) { try await waiting.value }
    server.release()
    await stopping.value
    #expect(clock.pendingDeadlines.isEmpty)
    #expect(told.all == ["one"])
    #expect(await failure(session)?.kind == .stopped)
    #expect(session.currentToken == nil)
    await session.stop()
    subscription.cancel()
  }

  // MARK: Nothing secret

  @Test func nothingSecretIsLoggedOrDescribed() async throws {
    let lines = Locked<[String]>([])
    let log = HostLog(minimum: .debug) { _, event, fields in
      lines.withLock { $0.append("\(event) \(fields)") }
    }
    server.then(AuthServer.grants("one", refresh: "refresh-secret"))
    server.then(AuthServer.refuses("refresh_token_not_found"))
    server.then(AuthServer.refuses("invalid_credentials"))
    let session = try session(stateFile: "/nowhere/session", log: log)
    let token = try await session.accessToken()
    let failure = await failure(session, refresh: true)
    var text = lines.withLock { $0 }.joined(separator: "\n")
    text += "\(token) \(String(reflecting: token)) \(String(describing: failure)) \(String(reflecting: failure))"
    dump(token, to: &text)
    dump(Secret("refresh-secret"), to: &text)
    #expect(lines.withLock { $0.count } >= 3)
    for secret in [token.value, "refresh-secret", "s3cret", "anon-key", "ada@example.com", "user-1", "c2ln"] {
      #expect(!text.contains(secret), "\(secret) shows")
    }
    await session.stop()
  }
}
