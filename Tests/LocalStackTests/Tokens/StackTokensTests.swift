import HostKit
import Testing

@testable import LocalStack

@Suite struct StackTokensTests {
  private let tokens = StackTokens(secret: "secret", issuedAt: 1000)

  private func token(_ claims: [String: JSONValue]) -> String { JWT.sign(claims, secret: "secret") }

  @Test func anExpiryMustLieAhead() throws {
    #expect(try tokens.verify(token(["exp": 1001]), now: 1000)["exp"] == 1001)
    #expect(throws: StackTokens.Refusal.expired) { try tokens.verify(token(["exp": 1000]), now: 1000) }
  }

  @Test(arguments: [["exp": "soon"], ["exp": 2000, "iat": "x"], ["exp": 2000, "iat": 1031]] as [[String: JSONValue]])
  func refusesClaimsThatCannotBe(claims: [String: JSONValue]) {
    #expect(throws: StackTokens.Refusal.badClaims) { try tokens.verify(token(claims), now: 1000) }
  }

  @Test func thePublishableKeyIsAnonymousAndLongLived() throws {
    let claims = try tokens.verify(tokens.publishableKey, now: 1000 + 9 * 365 * 86_400)
    #expect(claims["role"] == "anon")
    #expect(claims["sub"] == nil)
  }

  @Test func acceptsItsOwnKeysAndOpaqueOnes() {
    #expect(tokens.accepts(apiKey: tokens.publishableKey, now: 1000))
    #expect(tokens.accepts(apiKey: "sb_publishable_abc", now: 1000))
    #expect(!tokens.accepts(apiKey: "wrong", now: 1000))
    #expect(!tokens.accepts(apiKey: StackTokens(secret: "other", issuedAt: 1000).publishableKey, now: 1000))
  }
}
