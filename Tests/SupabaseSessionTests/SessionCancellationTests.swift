import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import SupabaseSession

/// Whoever asks for a token may leave at any moment. Nothing is lost by it: not the request that is under way, not the
/// refresh token it brings, and nobody else waits any longer.
@Suite struct SessionCancellationTests {
  private let server = AuthServer()
  private let clock = VirtualClock()

  private func session() throws -> SupabaseSession {
    let session = SupabaseSession(
      source: .password(email: "ada@example.com", password: { "s3cret" }), server: try ServerURL("https://example.com"),
      publishableKey: "anon-key", http: server, clock: clock, jitter: { 1 })
    clock.enroll(session.thread)
    return session
  }

  private enum Answer: Equatable {
    case token(String), cancelled, other
  }

  private func answer(of task: Task<AccessToken, any Error>) async -> Answer {
    switch await task.result {
    case .success(let token): .token(token.value)
    case .failure(let error): error is CancellationError ? .cancelled : .other
    }
  }

  /// The steps of a sign-in, or of a refresh: asked, sent, answered. The one who leaves goes after so many turns of the
  /// processor, another stays.
  @Test(arguments: [false, true])
  func aCallerLeavesBetweenAnyTwoSteps(isRefresh: Bool) async throws {
    for turns in 0..<24 {
      let (server, session) = (server, try session())
      var before = server.requests.count
      if isRefresh {
        server.then(AuthServer.grants("first", refresh: "r1"))
        _ = try await session.accessToken()
        before += 1
      }
      server.then(AuthServer.grants("second", refresh: "r2"))
      let leaving = Task { try await session.accessToken(refresh: isRefresh) }
      for _ in 0..<turns { await Task.yield() }
      leaving.cancel()
      let staying = Task { try await session.accessToken() }
      let (left, stayed) = (await answer(of: leaving), await answer(of: staying))
      #expect(left == .cancelled || left == .token(AuthServer.token("second")), "after \(turns)")
      // Without a need of its own the one who stays may be given the first.
      let good = [AuthServer.token("second")] + (isRefresh ? [AuthServer.token("first")] : [])
      #expect(good.contains { stayed == .token($0) }, "after \(turns)")
      await clock.settle { session.currentToken?.value == AuthServer.token("second") }
      #expect(session.currentToken?.value == AuthServer.token("second"), "after \(turns)")
      #expect(server.requests.count == before + 1, "after \(turns)")
      await session.stop()
    }
  }

  /// The request is held by the server, at its longest: the caller is free at once, and the answer is used later.
  @Test func aCallerLeavesWhileTheServerThinks() async throws {
    let session = try session()
    server.hold()
    server.then(AuthServer.grants("one", refresh: "r1"))
    let leaving = (0..<10).map { _ in Task { try await session.accessToken() } }
    await clock.settle { !server.requests.isEmpty }
    for task in leaving { task.cancel() }
    for task in leaving { #expect(await answer(of: task) == .cancelled) }
    server.release()
    await clock.settle { session.currentToken != nil }
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    #expect(server.requests.count == 1)
    await session.stop()
  }
}
