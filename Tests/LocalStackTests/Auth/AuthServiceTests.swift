import HostKit
import Testing

@testable import LocalStack

@Suite struct AuthServiceTests {
  private let fixture: ServiceFixture

  init() throws { fixture = try ServiceFixture() }

  @Test func signsInByPassword() async throws {
    let response = await fixture.signIn()
    let body = response.json
    #expect(response.status == 200)
    #expect(body["token_type"] == "bearer")
    #expect(body["expires_in"] == 3600)
    #expect(body["expires_at"] == .int(fixture.services.now + 3600))
    #expect(body["user"]?["id"] == .string(fixture.user))
    #expect(body["user"]?["email"] == .string(ServiceFixture.email))
    let token = try #require(body["access_token"]?.stringValue)
    let claims = try fixture.services.tokens.verify(token, now: fixture.services.now)
    #expect(claims["sub"] == .string(fixture.user))
    #expect(claims["role"] == "authenticated")
    #expect(claims["session_id"]?.stringValue != nil)
  }

  @Test func aWrongPasswordIsRefusedInBothShapes() async {
    let old = await fixture.signIn(password: "wrong")
    #expect(old.status == 400)
    #expect(old.json == ["code": 400, "error_code": "invalid_credentials", "msg": "Invalid login credentials"])
    let new = await fixture.send(
      "POST", "/auth/v1/token", query: "grant_type=password", ["email": "nobody@example.com", "password": "x"],
      headers: ["X-Supabase-Api-Version": "2024-01-01"])
    #expect(new.json == ["code": "invalid_credentials", "message": "Invalid login credentials"])
  }

  @Test func aRefreshTokenIsUsedOnce() async throws {
    let first = try #require(await fixture.signIn().json["refresh_token"]?.stringValue)
    let second = try #require(await fixture.refresh(first).json["refresh_token"]?.stringValue)
    #expect(first != second)
    let third = try #require(await fixture.refresh(second).json["refresh_token"]?.stringValue)

    fixture.clock.advance(seconds: 60)
    let stolen = await fixture.refresh(first)
    #expect(stolen.status == 400)
    #expect(stolen.json["error_code"] == "refresh_token_already_used")
    #expect(await fixture.refresh(third).json["error_code"] == "refresh_token_not_found", "the session is over")
  }

  @Test func aLostAnswerToARefreshIsGivenAgain() async throws {
    let first = try #require(await fixture.signIn().json["refresh_token"]?.stringValue)
    let second = try #require(await fixture.refresh(first).json["refresh_token"]?.stringValue)
    fixture.clock.advance(seconds: 3600)
    #expect(await fixture.refresh(first).json["refresh_token"] == .string(second))
    #expect(await fixture.refresh(second).status == 200)
  }

  @Test func tellsWhoATokenIs() async throws {
    let token = fixture.accessToken()
    #expect(await fixture.send("GET", "/auth/v1/user", bearer: token).json["id"] == .string(fixture.user))
    let without = await fixture.send("GET", "/auth/v1/user")
    #expect((without.status, without.json["error_code"]) == (401, "no_authorization"))
    fixture.clock.advance(seconds: 3600)
    let expired = await fixture.send("GET", "/auth/v1/user", bearer: token)
    #expect((expired.status, expired.json["error_code"]) == (403, "bad_jwt"))
    #expect(expired.json["msg"]?.stringValue?.contains("expired") == true)
  }

  @Test(arguments: [("local", 1), ("others", 1), ("global", 0)])
  func signsOut(scope: String, left: Int) async throws {
    let here = await fixture.signIn().json
    let there = await fixture.signIn().json
    let token = try #require(here["access_token"]?.stringValue)
    let response = await fixture.send("POST", "/auth/v1/logout", query: "scope=\(scope)", bearer: token)
    #expect(response.status == 204)
    var alive = 0
    for session in [here, there] {
      if await fixture.refresh(try #require(session["refresh_token"]?.stringValue)).status == 200 { alive += 1 }
    }
    #expect(alive == left)
  }

  @Test(arguments: [("grant_type=magic", "{}", 400), ("grant_type=password", "[", 400), ("", "{}", 400)])
  func refusesMalformedRequests(query: String, body: String, status: Int) async {
    let request = StackRequest(
      method: "POST", path: "/auth/v1/token", query: query,
      headers: [StackHeader("apikey", fixture.services.tokens.publishableKey)], body: Array(body.utf8))
    #expect(await fixture.router.handle(request).status == status)
  }
}
