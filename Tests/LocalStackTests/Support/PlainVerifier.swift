import HostKit

@testable import LocalStack

/// Tokens that are their own claims, so that tests can read them.
struct PlainVerifier: TokenVerifier {
  func claims(of token: String) throws(TokenProblem) -> JSONValue {
    if token == "forged" { throw .badSignature }
    guard let claims = try? JSONValue(parsing: token), claims.objectValue != nil else { throw .malformed }
    return claims
  }

  static func token(role: String? = "authenticated", exp: Int? = 2_000_000_000, sub: String = "u1") -> String {
    var claims: [String: JSONValue] = ["sub": .string(sub)]
    if let role { claims["role"] = .string(role) }
    if let exp { claims["exp"] = .int(exp) }
    return JSONWriter.text(.object(claims))
  }
}
