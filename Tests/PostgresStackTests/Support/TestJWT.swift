#if Postgres
  import HostKit

  @testable import LocalStack

  enum TestJWT {
    static func sign(_ claims: [String: JSONValue], secret: String) -> String { JWT.sign(claims, secret: secret) }
  }
#endif
