import HostKit
import Testing

@Suite struct UnverifiedTokenTests {
  private func token(_ claims: JSONValue) -> String {
    "e30." + Base64.encode(JSONWriter.data(claims), .url) + ".c2ln"
  }

  @Test func readsTheClaims() throws {
    let token = try #require(
      UnverifiedToken(token(["sub": "user-ü", "role": "authenticated", "exp": 1_767_225_600, "iat": 1_767_222_000])))
    #expect(token.subject == "user-ü")
    #expect(token.role == "authenticated")
    #expect(token.expiresAt == 1_767_225_600)
    #expect(token.issuedAt == 1_767_222_000)
  }

  @Test func whatIsAbsentIsNil() throws {
    let empty = try #require(UnverifiedToken(token(["sub": ""])))
    #expect(empty.subject == nil)
    #expect(empty.expiresAt == nil)
    let decimal = try #require(UnverifiedToken(token(["exp": .number(JSONNumber(lexeme: "12.6")!)])))  // a literal
    #expect(decimal.expiresAt == 13)
  }

  @Test(arguments: ["", "a.b", "e30.W10.x", "e30.###.x", "sb_publishable_abc", "e30.e30.x.y"])
  func refuses(text: String) {
    #expect(UnverifiedToken(text) == nil)
  }
}
