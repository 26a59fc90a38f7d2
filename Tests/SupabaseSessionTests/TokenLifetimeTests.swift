import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import SupabaseSession

/// Numbers in tokens and answers are the peer's: any of them may stand there, and none of them ends the process.
@Suite struct TokenLifetimeTests {
  private static let wall: Int64 = 1_767_225_600_000
  private static let odd: [Int64?] = [
    .min, .min + 1, -9_000_000_000_000_000_000, -1, 0, 1, 1_767_225_600, 1_767_229_200, 1 << 33, .max / 1000, .max - 1,
    .max, nil,
  ]

  private func claims(issuedAt: Int64?, expiresAt: Int64?) throws -> UnverifiedToken {
    var claims: [String: JSONValue] = ["sub": "u"]
    claims["iat"] = issuedAt.map { .int($0) }
    claims["exp"] = expiresAt.map { .int($0) }
    return try #require(UnverifiedToken("e30." + Base64.encode(JSONWriter.data(.object(claims)), .url) + ".c2ln"))
  }

  @Test func anyNumbersGiveALife() throws {
    for issuedAt in Self.odd {
      for expiresAt in Self.odd {
        let claims = try claims(issuedAt: issuedAt, expiresAt: expiresAt)
        for wall in [Int64.min, 0, Self.wall, .max] {
          for remaining in [claims.remaining(at: wall), claims.remainingIfPlausible(at: wall), claims.lifetime] {
            for now: UInt64 in [0, 1_000_000_000_000_000, .max - 1] {
              let token = AccessToken(value: "t", claims: claims, receivedAt: now, remaining: remaining)
              #expect(token.refreshAt <= token.expiresAt)
              #expect(token.expiresAt >= now)
            }
          }
        }
      }
    }
  }

  @Test func aLifeIsTakenFromItsEnds() throws {
    let hour = try claims(issuedAt: 1_767_225_600, expiresAt: 1_767_229_200)
    #expect(hour.lifetime == .seconds(3600))
    #expect(hour.remaining(at: Self.wall + 600_000) == .seconds(3000))
    #expect(hour.remainingIfPlausible(at: Self.wall + 600_000) == .seconds(3000))
    #expect(hour.remainingIfPlausible(at: Self.wall - 3_600_000) == nil)
    // From the beginning of time it makes no sense, and only the end is taken.
    let ancient = try claims(issuedAt: .min, expiresAt: 1_767_229_200)
    #expect(ancient.lifetime == nil)
    #expect(ancient.remaining(at: Self.wall) == .seconds(3600))
    #expect(ancient.remainingIfPlausible(at: Self.wall) == .seconds(3600))
  }

  @Test(
    arguments: [
      (nil, nil), (0, nil), (-1, nil), (Int.min, nil), (3600, .seconds(3600)), (18_446_744_074, .max), (Int.max, .max),
    ] as [(Int?, UInt64?)])
  func secondsOfAnAnswer(expiresIn: Int?, nanoseconds: UInt64?) {
    #expect(TokenGrant.nanoseconds(expiresIn) == nanoseconds)
  }

  @Test(arguments: [Int64.min, -9_000_000_000_000_000_000, 0, .max])
  func theCalendarIsComparedWithAnyEnd(end: Int64) async throws {
    let text =
      "e30." + Base64.encode(JSONWriter.data(["sub": "u", "iat": .int(end), "exp": .int(end)]), .url) + ".c2ln"
    let server = AuthServer()
    server.then { _ in
      HTTPResponse(
        status: 200,
        body: JSONWriter.data(["access_token": .string(text), "expires_in": .int(Int.max), "refresh_token": "r"]))
    }
    let clock = VirtualClock()
    let session = SupabaseSession(
      source: .password(email: "a@b.c", password: { "p" }), server: try ServerURL("https://example.com"),
      publishableKey: "", http: server, clock: clock)
    clock.enroll(session.thread)
    #expect(try await session.accessToken().value == text)
    await session.calendarChanged()
    await session.stop()
  }
}
