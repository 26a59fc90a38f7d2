import Foundation
import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import SupabaseSession

@Suite struct SupabaseSessionTests {
  let server = AuthServer()
  let clock = VirtualClock()

  func session(
    _ source: SupabaseSession.Source = .password(email: "ada@example.com", password: { "s3cret" }),
    stateFile: String? = nil, log: HostLog = .none
  ) throws -> SupabaseSession {
    let session = SupabaseSession(
      source: source, server: try ServerURL("https://example.com"), publishableKey: "anon-key", http: server,
      clock: clock, stateFile: stateFile, log: log, jitter: { 1 })
    clock.enroll(session.thread)
    return session
  }

  func failure(_ session: SupabaseSession, refresh: Bool = false) async -> SessionFailure? {
    do {
      _ = try await session.accessToken(refresh: refresh)
      return nil
    } catch {
      return error as? SessionFailure
    }
  }

  /// Collects what subscribers are told.
  final class Told: Sendable {
    private let names = Locked<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func add(_ token: AccessToken?) {
      names.withLock { $0.append(token.flatMap { UnverifiedToken($0.value)?.claims["name"]?.stringValue } ?? "none") }
    }
  }

  // MARK: Signing in and refreshing

  @Test func thePasswordIsSentOnceForAllWhoAsk() async throws {
    server.hold()
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<20 { group.addTask { try await session.accessToken().value } }
      await clock.settle()
      server.release()
      for try await token in group { #expect(token == AuthServer.token("one")) }
    }
    #expect(server.asked == ["password ada@example.com s3cret"])
    let request = try #require(server.requests.first)
    #expect(request.method == "POST")
    #expect(request.url == "https://example.com/auth/v1/token?grant_type=password")
    #expect(request.headers.contains(HTTPHeader("apikey", "anon-key")))
    #expect(!request.headers.contains { $0.name.lowercased() == "authorization" })
    let token = try #require(session.currentToken)
    #expect(token.subject == "user-1")
    #expect(token.role == "authenticated")
    await session.stop()
  }

  /// It would end the header it is put into, so that no request leaves; that is not the network's fault.
  @Test(arguments: ["e30.e30.a\r\nX: y", "e30.e30.a\n", "e30 e30"])
  func aTokenThatNoHeaderCanCarryIsNamed(token: String) async throws {
    server.then { _ in HTTPResponse(status: 200, body: JSONWriter.data(["access_token": .string(token)])) }
    let session = try session()
    let failure = await failure(session)
    #expect(failure?.kind == .authentication)
    #expect(failure?.message.contains("an access token that cannot be used") == true)
    #expect(failure?.message.contains("e30") == false)
    await session.stop()
  }

  @Test func anotherProgramAtTheAddressIsNamed() async throws {
    server.then { _ in HTTPResponse(status: 200, body: Array("<html>sign in</html>".utf8)) }
    let session = try session()
    let failure = await failure(session)
    #expect(failure?.kind == .transient)
    #expect(failure?.message.contains("another program answers at this address; check url") == true)
    await session.stop()
  }

  @Test func aTokenIsReplacedAMinuteBeforeItsEndWithoutBeingAsked() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    server.then(AuthServer.grants("two", refresh: "r2"))
    server.then(AuthServer.grants("three", refresh: "r3"))
    let session = try session()
    let told = Told()
    let subscription = session.onToken { told.add($0) }
    await session.start()
    await clock.settle()
    await clock.advance(by: .seconds(3539))
    #expect(told.all == ["one"])
    await clock.advance(by: .seconds(2))
    #expect(told.all == ["one", "two"])
    await clock.advance(by: .seconds(3540))
    #expect(told.all == ["one", "two", "three"])
    #expect(server.asked == ["password ada@example.com s3cret", "refresh_token r1", "refresh_token r2"])
    #expect(try await session.accessToken().value == AuthServer.token("three"))
    #expect(server.requests.count == 3)
    subscription.cancel()
    await session.stop()
  }

  @Test func aLateSubscriberIsToldAtOnce() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    _ = try await session.accessToken()
    let told = Told()
    let subscription = session.onToken { told.add($0) }
    await clock.settle()
    #expect(told.all == ["one"])
    subscription.cancel()
    await session.stop()
  }

  @Test func theLifeOfATokenIsCountedFromItsReceiptWhateverTheCalendar() async throws {
    // The server lives in 2026, this machine's calendar says 1970 and then jumps; only the passing of time counts.
    server.then(AuthServer.grants("one", refresh: "r1"))
    server.then(AuthServer.grants("two", refresh: "r2"))
    let session = try session()
    clock.jumpWall(byMilliseconds: -clock.wallMilliseconds)
    _ = try await session.accessToken()
    await clock.advance(by: .seconds(1800))
    clock.jumpWall(byMilliseconds: 86_400_000)
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await clock.advance(by: .seconds(1800))
    #expect(try await session.accessToken().value == AuthServer.token("two"))
    await session.stop()
  }

  @Test func afterASuspensionTheTokenIsRenewedBeforeItIsHandedOut() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    server.then(AuthServer.grants("two", refresh: "r2"))
    let session = try session()
    _ = try await session.accessToken()
    await clock.suspendHost(for: .seconds(7200))
    #expect(try await session.accessToken().value == AuthServer.token("two"))
    #expect(server.requests.count == 2)
    await session.stop()
  }

  @Test func aCalendarThatPassesTheEndLeadsToOneCheck() async throws {
    // The clock that counts stood still while a hypervisor paused the machine; afterwards the calendar was set.
    server.then(AuthServer.grants("one", refresh: "r1"))
    server.then(AuthServer.grants("two", refresh: "r2"))
    let session = try session()
    _ = try await session.accessToken()
    await session.calendarChanged()
    await clock.settle()
    #expect(server.requests.count == 1)
    clock.jumpWall(byMilliseconds: 3_600_000)
    await session.calendarChanged()
    await clock.settle()
    #expect(server.asked.last == "refresh_token r1")
    #expect(server.requests.count == 2)
    await session.stop()
  }

  @Test func shortLivedTokensAreReplacedHalfWay() async throws {
    server.then(AuthServer.grants("one", refresh: "r1", lifetime: 10))
    server.then(AuthServer.grants("two", refresh: "r2", lifetime: 10))
    let session = try session()
    _ = try await session.accessToken()
    await clock.advance(by: .seconds(4.9))
    #expect(server.requests.count == 1)
    await clock.advance(by: .seconds(0.2))
    #expect(server.requests.count == 2)
    await session.stop()
  }

  @Test func withoutClaimsTheServersWordCounts() async throws {
    server.then { _ in
      HTTPResponse(status: 200, body: Array(#"{"access_token":"opaque","expires_in":600,"refresh_token":"r1"}"#.utf8))
    }
    server.then(AuthServer.grants("two", refresh: "r2"))
    let session = try session()
    #expect(try await session.accessToken().value == "opaque")
    await clock.advance(by: .seconds(541))
    #expect(server.asked.last == "refresh_token r1")
    await session.stop()
  }

  @Test func tokensThatAreOverAtOnceDoNotMakeItSpin() async throws {
    for name in ["one", "two", "three", "four"] { server.then(AuthServer.grants(name, refresh: name, lifetime: 0)) }
    let session = try session()
    _ = try? await session.accessToken()
    await clock.advance(by: .seconds(2))
    #expect(server.requests.count <= 3)
    await session.stop()
  }

  // MARK: Failures

  @Test func aWrongPasswordIsSaidClearlyAndNotRepeated() async throws {
    server.then(AuthServer.refuses("invalid_credentials"))
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    let first = await failure(session)
    #expect(first?.kind == .authentication)
    #expect(
      first?.message
        == "example.com:443 refused the e-mail address or the password (invalid_credentials); check both, and that the user exists there"
    )
    #expect(first?.exitCode == .authentication)
    #expect(await failure(session) == first)
    await clock.advance(by: .seconds(149))
    #expect(server.requests.count == 1)
    // Rarely it is tried again, because somebody may have corrected the password.
    await clock.advance(by: .seconds(302))
    #expect(server.requests.count == 2)
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await session.stop()
  }

  @Test func whoeverCorrectedThePasswordCanAskForItToBeTried() async throws {
    let password = Locked("wrong")
    server.then(AuthServer.refuses("invalid_credentials"))
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session(.password(email: "ada@example.com", password: { password.withLock { $0 } }))
    _ = await failure(session)
    await session.retryNow()
    await clock.settle()
    #expect(server.requests.count == 1)
    password.withLock { $0 = "right" }
    await session.retryNow(afterRefusal: true)
    await clock.settle()
    #expect(server.asked.last == "password ada@example.com right")
    #expect(session.failure == nil)
    await session.stop()
  }

  @Test func aSpentRefreshTokenFallsBackToThePassword() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    server.then(AuthServer.refuses("refresh_token_already_used"))
    server.then(AuthServer.grants("two", refresh: "r2"))
    let session = try session()
    _ = try await session.accessToken()
    #expect(try await session.accessToken(refresh: true).value == AuthServer.token("two"))
    #expect(
      server.asked == [
        "password ada@example.com s3cret", "refresh_token r1", "password ada@example.com s3cret",
      ])
    await session.stop()
  }

  @Test func withoutAPasswordASpentRefreshTokenIsTheEnd() async throws {
    server.then(AuthServer.grants("one", refresh: "r2"))
    server.then(AuthServer.refuses("refresh_token_not_found"))
    let session = try session(.refreshToken("r1"))
    let told = Told()
    let subscription = session.onToken { told.add($0) }
    _ = try await session.accessToken()
    await clock.advance(by: .seconds(3541))
    // The access token lasts a minute longer than the attempt to replace it.
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await clock.advance(by: .seconds(60))
    let end = await failure(session)
    #expect(end?.kind == .authentication)
    #expect(end?.message == "example.com:443 refused the refresh token (refresh_token_not_found); sign in again")
    #expect(told.all == ["one", "none"])
    await clock.advance(by: .seconds(86_400))
    #expect(server.requests.count == 2)
    subscription.cancel()
    await session.stop()
  }

  @Test func aWrongKeyDoesNotCostTheRefreshToken() async throws {
    server.then { _ in HTTPResponse(status: 401, body: Array(#"{"message":"Invalid API key"}"#.utf8)) }
    server.then(AuthServer.grants("one", refresh: "r2"))
    let session = try session(.refreshToken("r1"))
    let first = await failure(session)
    #expect(first?.kind == .authentication)
    #expect(first?.message.contains("check the publishable key") == true)
    await session.retryNow(afterRefusal: true)
    await clock.settle()
    #expect(server.asked == ["refresh_token r1", "refresh_token r1"])
    #expect(session.failure == nil)
    await session.stop()
  }

  @Test func anUnreachableServerIsTriedAgainWithGrowingPauses() async throws {
    for _ in 0..<8 { server.then(AuthServer.throwing(.unreachable)) }
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    let start = clock.now
    let first = await failure(session)
    #expect(first?.kind == .transient)
    #expect(first?.exitCode == .unreachable)
    var pauses: [Double] = []
    var last = start
    var seen = server.requests.count
    while seen < 9 {
      guard let next = clock.pendingDeadlines.first else { break }
      await clock.advance(to: next)
      guard server.requests.count > seen else { continue }
      seen = server.requests.count
      pauses.append((clock.now - last).inSeconds)
      last = clock.now
    }
    // The draw is always the largest.
    #expect(pauses == [1, 2, 4, 8, 16, 30, 30, 30])
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    await session.stop()
  }

  @Test func whileItPausesAskingDoesNotSendAndANetworkHintDoes() async throws {
    server.then(AuthServer.throwing(.unreachable))
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    for _ in 0..<5 { #expect(await failure(session)?.kind == .transient) }
    #expect(server.requests.count == 1)
    await session.retryNow()
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    #expect(server.requests.count == 2)
    await session.stop()
  }

  @Test func anOverloadedServerIsGivenTheTimeItAsksFor() async throws {
    server.then(AuthServer.fails(429, headers: [HTTPHeader("Retry-After", "20")]))
    server.then(AuthServer.grants("one", refresh: "r1"))
    let session = try session()
    #expect(await failure(session)?.kind == .transient)
    await clock.advance(by: .seconds(19))
    #expect(server.requests.count == 1)
    await clock.advance(by: .seconds(2))
    #expect(server.requests.count == 2)
    await session.stop()
  }

  @Test func aTokenThatStillLastsIsUsedWhileTheServerIsAway() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    for _ in 0..<20 { server.then(AuthServer.fails(503)) }
    let session = try session()
    _ = try await session.accessToken()
    await clock.advance(by: .seconds(3550))
    #expect(try await session.accessToken().value == AuthServer.token("one"))
    #expect(await failure(session, refresh: true)?.kind == .transient)
    await clock.advance(by: .seconds(51))
    #expect(await failure(session)?.kind == .transient)
    await session.stop()
  }

  @Test func aRefusedTokenIsReplacedOnceAndThenNotAgainAtOnce() async throws {
    server.then(AuthServer.grants("one", refresh: "r1"))
    server.then(AuthServer.grants("two", refresh: "r2"))
    server.then(AuthServer.grants("three", refresh: "r3"))
    let session = try session()
    let told = Told()
    let subscription = session.onToken { told.add($0) }
    let one = try await session.accessToken().value
    for _ in 0..<5 { await session.invalidate(one) }
    let two = try await session.accessToken().value
    #expect(two == AuthServer.token("two"))
    #expect(server.requests.count == 2)
    // An old token's refusal says nothing about the new one.
    await session.invalidate(one)
    #expect(try await session.accessToken().value == two)
    // The new one refused as well: the fault is elsewhere.
    await session.invalidate(two)
    #expect(await failure(session)?.kind == .authentication)
    await clock.settle()
    #expect(server.requests.count == 2)
    #expect(told.all == ["one", "two", "none"])
    await clock.advance(by: .seconds(451))
    #expect(told.all == ["one", "two", "none", "three"])
    subscription.cancel()
    await session.stop()
  }

  @Test(arguments: [
    (301, SessionFailure.Kind.configuration), (404, .configuration), (500, .transient), (418, .authentication),
  ])
  func answersAreSortedByWhatHelps(status: Int, kind: SessionFailure.Kind) async throws {
    server.then(AuthServer.fails(status))
    let session = try session()
    #expect(await failure(session)?.kind == kind)
    await session.stop()
  }
}
