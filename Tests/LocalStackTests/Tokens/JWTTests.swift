import HostKit
import Testing

@testable import LocalStack

@Suite struct JWTTests {
  /// The example of jwt.io.
  private let known =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ."
    + "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
  private let secret = "your-256-bit-secret"

  @Test func verifiesAKnownToken() throws {
    let claims = try JWT.claims(of: known, secret: secret)
    #expect(claims["sub"] == "1234567890")
    #expect(claims["iat"] == 1_516_239_022)
  }

  @Test func signsWhatItVerifies() throws {
    let token = JWT.sign(["sub": "ü", "n": 1], secret: "s")
    #expect(try JWT.claims(of: token, secret: "s") == ["sub": "ü", "n": 1])
    #expect(!token.contains("="))
  }

  @Test func refusesAnotherSecretAndChangedClaims() {
    #expect(throws: JWT.Problem.badSignature) { try JWT.claims(of: known, secret: "other") }
    let parts = known.split(separator: ".")
    let forged = "\(parts[0]).\(Base64.encode(Array(#"{"sub":"admin"}"#.utf8), .url)).\(parts[2])"
    #expect(throws: JWT.Problem.badSignature) { try JWT.claims(of: forged, secret: secret) }
  }

  @Test(arguments: ["", "a.b.c", "sb_publishable_x", "e30.e30.e30", "eyJhbGciOiJub25lIn0.e30."])
  func refusesWhatIsNoToken(text: String) {
    #expect(throws: JWT.Problem.malformed) { try JWT.claims(of: text, secret: secret) }
  }
}
