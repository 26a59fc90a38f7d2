import HostKit

/// Signs and checks the tokens of one development server.
public struct StackTokens: Sendable {
  /// The secret all tokens are signed with.
  public let secret: String
  /// The `anon` token that clients use as their publishable key.
  public let publishableKey: String

  private static let issuer = "kizuna-localstack"

  /// - Parameter issuedAt: seconds since 1970; the key is good for ten years from then.
  public init(secret: String, issuedAt: Int64) {
    self.secret = secret
    publishableKey = JWT.sign(
      [
        "iss": .string(Self.issuer), "role": "anon", "iat": .int(issuedAt),
        "exp": .int(issuedAt + 10 * 365 * 86_400),
      ], secret: secret)
  }

  /// An access token of a signed-in user.
  ///
  /// - Parameters:
  ///   - now: seconds since 1970.
  ///   - lifetime: seconds.
  public func accessToken(
    subject: String, email: String? = nil, session: String? = nil, now: Int64, lifetime: Int64
  ) -> String {
    var claims: [String: JSONValue] = [
      "iss": .string(Self.issuer), "aud": "authenticated", "role": "authenticated", "sub": .string(subject),
      "iat": .int(now), "exp": .int(now + lifetime), "phone": "", "aal": "aal1", "is_anonymous": false,
      "app_metadata": ["provider": "email", "providers": ["email"]], "user_metadata": [:],
      "amr": [["method": "password", "timestamp": .int(now)]],
    ]
    claims["email"] = email.map(JSONValue.string)
    claims["session_id"] = session.map(JSONValue.string)
    return JWT.sign(claims, secret: secret)
  }

  /// Why a bearer token was refused.
  public enum Refusal: Error, Sendable, Hashable {
    case malformed, badSignature, expired
    /// `exp` or `iat` is not a number, or `iat` lies in the future.
    case badClaims
  }

  /// The claims of a token that is signed by this server and not expired.
  ///
  /// - Parameter now: seconds since 1970. A token is good while `exp` lies after it.
  public func verify(_ token: String, now: Int64) throws(Refusal) -> [String: JSONValue] {
    let claims: [String: JSONValue]
    do throws(JWT.Problem) {
      claims = try JWT.claims(of: token, secret: secret)
    } catch {
      throw error == .malformed ? .malformed : .badSignature
    }
    if let expiry = claims["exp"] {
      guard let expiry = expiry.numberValue?.double else { throw .badClaims }
      guard expiry.rounded() > Double(now) else { throw .expired }
    }
    if let issued = claims["iat"] {
      // PostgREST allows clocks to differ by 30 seconds.
      guard let issued = issued.numberValue?.double, issued <= Double(now) + 30 else { throw .badClaims }
    }
    return claims
  }

  /// Whether a key opens the gateway: a token of this server, or one in the opaque form of hosted projects.
  public func accepts(apiKey: String, now: Int64) -> Bool {
    apiKey.hasPrefix("sb_publishable_") || apiKey.hasPrefix("sb_secret_") || (try? verify(apiKey, now: now)) != nil
  }
}
