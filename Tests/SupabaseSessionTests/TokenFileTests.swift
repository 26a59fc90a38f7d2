import Foundation
import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import SupabaseSession

/// Tokens that somebody else makes: given as text, or in a file that is replaced now and then.
@Suite final class TokenFileTests {
  private let server = AuthServer()
  private let clock = VirtualClock()
  private let folder: String

  init() throws {
    folder = NSTemporaryDirectory() + "kizuna-token-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private var path: String { folder + "/token" }

  private func write(_ text: String, atomically: Bool = true) throws {
    try text.write(toFile: path, atomically: atomically, encoding: .utf8)
  }

  private func session(_ source: SupabaseSession.Source) throws -> SupabaseSession {
    let session = SupabaseSession(
      source: source, server: try ServerURL("https://example.com"), publishableKey: "", http: server, clock: clock)
    clock.enroll(session.thread)
    return session
  }

  private func failure(_ session: SupabaseSession) async -> SessionFailure? {
    do {
      _ = try await session.accessToken()
      return nil
    } catch {
      return error as? SessionFailure
    }
  }

  @Test func aFixedTokenLastsUntilItsEnd() async throws {
    let session = try session(.accessToken(AuthServer.token("one")))
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await clock.advance(by: .seconds(3590))
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await clock.advance(by: .seconds(11))
    #expect(await failure(session) == SessionFailure(.authentication, "the access token has expired; replace it"))
    #expect(server.requests.isEmpty)
    await session.stop()
  }

  @Test func aFixedTokenThatIsOverAlreadyIsNeverHandedOut() async throws {
    let session = try session(.accessToken(AuthServer.token("one", issuedAt: 1_767_000_000)))
    #expect(await failure(session)?.kind == .authentication)
    #expect(session.currentToken == nil)
    await session.stop()
  }

  @Test func aFixedTokenThatIsRefusedIsNotUsedAgain() async throws {
    let session = try session(.accessToken(AuthServer.token("one")))
    let token = try await session.accessToken().value
    await session.invalidate(token)
    #expect(
      await failure(session) == SessionFailure(.authentication, "the server refused the access token; replace it"))
    await clock.advance(by: .seconds(1000))
    #expect(await failure(session)?.kind == .authentication)
    await session.stop()
  }

  @Test func aTokenWithoutAnEndNeedsNoTimer() async throws {
    let session = try session(.accessToken(AuthServer.token("one", lifetime: nil)))
    _ = try await session.accessToken()
    await clock.settle()
    #expect(clock.pendingDeadlines.isEmpty)
    await session.stop()
  }

  @Test(arguments: ["sb_publishable_abc", "", "a.b.c"]) func whatIsNoTokenIsSaidWithoutShowingIt(text: String)
    async throws
  {
    let session = try session(.accessToken(text))
    let failure = await failure(session)
    #expect(
      failure
        == SessionFailure(
          .configuration,
          "what is given as accessToken is not a JSON web token; give the access_token that the sign-in answered"))
    await session.stop()
  }

  /// The file holds the token "one"; after `change` everybody hears of the token "two".
  private func tokenBecomesTwo(_ change: () throws -> Void) async throws {
    let session = try session(.accessTokenFile(path))
    let told = AsyncStream.makeStream(of: String?.self)
    let subscription = session.onToken { told.continuation.yield($0?.value) }
    var tokens = told.stream.makeAsyncIterator()
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    #expect(await tokens.next() == AuthServer.token("one"))
    try change()
    #expect(await tokens.next() == AuthServer.token("two"))
    #expect(try await session.accessToken().value == AuthServer.token("two"))
    subscription.cancel()
    await session.stop()
  }

  @Test(arguments: [true, false]) func aFileThatIsReplacedGivesTheNewTokenAtOnce(atomically: Bool) async throws {
    try write(AuthServer.token("one") + "\n")
    try await tokenBecomesTwo { try write(AuthServer.token("two"), atomically: atomically) }
  }

  @Test func aMountedSecretThatIsTurnedToAnotherFolderIsNoticed() async throws {
    let files = FileManager.default
    for name in ["one", "two"] {
      try files.createDirectory(atPath: "\(folder)/..\(name)", withIntermediateDirectories: true)
      try AuthServer.token(name).write(toFile: "\(folder)/..\(name)/token", atomically: false, encoding: .utf8)
    }
    try files.createSymbolicLink(atPath: "\(folder)/..data", withDestinationPath: "..one")
    try files.createSymbolicLink(atPath: path, withDestinationPath: "..data/token")
    try await tokenBecomesTwo {
      try files.createSymbolicLink(atPath: "\(folder)/..new", withDestinationPath: "..two")
      #expect(rename("\(folder)/..new", "\(folder)/..data") == 0)
    }
  }

  /// The link stays as it is; the file that it leads to, in another folder, is replaced.
  @Test func aFileBehindALinkThatIsReplacedIsNoticed() async throws {
    let files = FileManager.default
    try files.createDirectory(atPath: folder + "/elsewhere", withIntermediateDirectories: true)
    let goal = folder + "/elsewhere/real"
    try AuthServer.token("one").write(toFile: goal, atomically: false, encoding: .utf8)
    try files.createSymbolicLink(atPath: path, withDestinationPath: goal)
    try await tokenBecomesTwo {
      try AuthServer.token("two").write(toFile: goal + ".new", atomically: false, encoding: .utf8)
      #expect(rename(goal + ".new", goal) == 0)
    }
  }

  /// Whoever asks to try again has the file read again, whatever the watch has noticed.
  @Test func askingAgainReadsTheFile() async throws {
    let session = try session(.accessTokenFile(path))
    _ = await failure(session)
    // A pipe's end, a network file system: the kernel tells nothing. Here the folder is moved away under the watch.
    let moved = folder + "-moved"
    #expect(rename(folder, moved) == 0)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try write(AuthServer.token("one"))
    await session.retryNow(afterRefusal: true)
    #expect(session.currentToken?.value == AuthServer.token("one"))
    try write(AuthServer.token("two"))
    await session.retryNow(afterRefusal: true)
    #expect(session.currentToken?.value == AuthServer.token("two"))
    await session.stop()
    try FileManager.default.removeItem(atPath: moved)
  }

  @Test func aFileThatAppearsLaterIsEnough() async throws {
    let session = try session(.accessTokenFile(path))
    let told = AsyncStream.makeStream(of: String?.self)
    let subscription = session.onToken { told.continuation.yield($0?.value) }
    let missing = await failure(session)
    #expect(missing?.kind == .configuration)
    #expect(
      missing?.message
        == "the access token's file \"\(path)\" cannot be read: No such file or directory; correct accessTokenFile, or write the token there"
    )
    try write(AuthServer.token("one"))
    var tokens = told.stream.makeAsyncIterator()
    #expect(await tokens.next() == AuthServer.token("one"))
    #expect(session.failure == nil)
    subscription.cancel()
    await session.stop()
  }

  @Test func aFileWithMoreThanATokenIsRefused() async throws {
    try write("\(AuthServer.token("one"))\n\(AuthServer.token("two"))\n")
    let session = try session(.accessTokenFile(path))
    let failure = await failure(session)
    #expect(
      failure
        == SessionFailure(
          .configuration, "the file \"\(path)\" (accessTokenFile) must hold one access token and nothing else"))
    await session.stop()
  }

  @Test func aRefusedTokenIsReadAgainAtOnceInCaseItWasReplaced() async throws {
    try write(AuthServer.token("one"))
    let session = try session(.accessTokenFile(path))
    let one = try await session.accessToken().value
    try write(AuthServer.token("two"))
    await session.invalidate(one)
    #expect(try await session.accessToken().value == AuthServer.token("two"))
    await session.stop()
  }
}
