import Foundation
import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import SupabaseSession

/// What survives a process: the newest refresh token, on the disk before anything else happens with the new tokens.
@Suite final class SessionStateFileTests {
  private let server = AuthServer()
  private let clock = VirtualClock()
  private let folder: String

  init() throws {
    folder = NSTemporaryDirectory() + "kizuna-session-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private var path: String { folder + "/app.db-kizuna.session" }

  private func session(
    email: String = "ada@example.com", url: String = "https://example.com", source: SupabaseSession.Source? = nil
  ) throws -> SupabaseSession {
    let session = SupabaseSession(
      source: source ?? .password(email: email, password: { "s3cret" }), server: try ServerURL(url),
      publishableKey: "", http: server, clock: clock, stateFile: path)
    clock.enroll(session.thread)
    return session
  }

  @Test func theNextRunGoesOnWhereThisOneEnded() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    let first = try session()
    _ = try await first.accessToken()
    await first.stop()
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["app.db-kizuna.session"])

    // Still good: no request at all.
    let second = try session()
    #expect(try await second.accessToken().value == AuthServer.token("one"))
    #expect(server.requests.count == 1)
    await second.stop()

    // Over by the calendar: the refresh token goes on.
    await clock.advance(by: .seconds(4000))
    server.then(AuthServer.grants("two", refresh: "r2"))
    let third = try session()
    #expect(try await third.accessToken().value == AuthServer.token("two"))
    #expect(server.asked.last == "refresh_token r1")
    await third.stop()
    let kept = try #require(try SessionFile.read(path, server: "example.com:443", identity: "password:ada@example.com"))
    #expect(kept.refreshToken == Secret("r2"))
  }

  @Test func theFileIsWrittenBeforeTheTokenIsUsed() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    let path = path
    let onDisk = Locked<[String]>([])
    let subscription = session.onToken { _ in
      let file = try? SessionFile.read(path, server: "example.com:443", identity: "password:ada@example.com")
      onDisk.withLock { $0.append(file?.refreshToken.value ?? "nothing") }
    }
    _ = try await session.accessToken()
    #expect(onDisk.withLock { $0 } == ["r1"])
    subscription.cancel()
    await session.stop()
  }

  @Test func aFileOfAnotherUserOrServerIsNotUsed() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    let first = try session()
    _ = try await first.accessToken()
    await first.stop()
    for other in [try session(email: "bob@example.com"), try session(url: "https://example.org")] {
      server.then(AuthServer.refuses("invalid_credentials"))
      _ = try? await other.accessToken()
      #expect(server.asked.last?.hasPrefix("password") == true)
      await other.stop()
    }
  }

  @Test func aRefreshTokenThatWasRotatedAwayIsTakenFromTheFile() async throws {
    server.then(AuthServer.grants("one", refresh: "r2", lifetime: 60))
    let first = try session(source: .refreshToken("r1"))
    _ = try await first.accessToken()
    await first.stop()
    await clock.advance(by: .seconds(100))
    server.then(AuthServer.grants("two", refresh: "r3"))
    let second = try session(source: .refreshToken("r1"))
    _ = try await second.accessToken()
    #expect(server.asked == ["refresh_token r1", "refresh_token r2"])
    await second.stop()
    // Another one given by hand begins another session.
    server.then(AuthServer.grants("three", refresh: "x2"))
    let third = try session(source: .refreshToken("x1"))
    _ = try await third.accessToken()
    #expect(server.asked.last == "refresh_token x1")
    await third.stop()
  }

  @Test func aCalendarBeforeTheTokensIssueIsNotTrusted() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    let first = try session()
    _ = try await first.accessToken()
    await first.stop()
    // Without a battery-backed clock a machine may start in 1970: the stored token could be years old.
    clock.jumpWall(byMilliseconds: -clock.wallMilliseconds)
    server.then(AuthServer.grants("two", refresh: "r2"))
    let second = try session()
    #expect(try await second.accessToken().value == AuthServer.token("two"))
    #expect(server.asked.last == "refresh_token r1")
    await second.stop()
  }

  @Test(arguments: ["", "{", "[]", "{\"refresh_token\": 1}", "\u{0}"])
  func aDamagedFileIsReportedAndReplaced(content: String) async throws {
    try content.write(toFile: path, atomically: false, encoding: .utf8)
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await session.stop()
    #expect(try SessionFile.read(path, server: "example.com:443", identity: "password:ada@example.com") != nil)
  }

  @Test func aFolderThatCannotBeWrittenDoesNotEndTheSession() async throws {
    try FileManager.default.removeItem(atPath: folder)
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await session.stop()
  }
}
