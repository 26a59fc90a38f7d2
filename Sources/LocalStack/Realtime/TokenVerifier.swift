import HostKit

/// Checks the form and the signature of a JWT. What the claims must be is checked by the Realtime server itself.
public protocol TokenVerifier: Sendable {
  /// - Returns: the claims.
  func claims(of token: String) throws(TokenProblem) -> JSONValue
}

public enum TokenProblem: Error, Sendable, Hashable {
  /// Not a JWT at all.
  case malformed
  /// Signed with another key.
  case badSignature
}

/// Why a token does not open a channel (Realtime wire contract §1, §5 and §6 give the texts).
enum TokenRefusal: Error, Equatable {
  case malformed
  case badSignature
  case missingClaims
  case expired(secondsAgo: Int64)

  /// At the upgrade.
  var upgradeText: String {
    switch self {
    case .malformed: "The token provided is not a valid JWT"
    case .badSignature: "Failed to validate JWT signature"
    case .missingClaims: "Fields `role` and `exp` are required in JWT"
    case .expired: "Token has expired"
    }
  }

  /// At a join.
  var joinReason: String {
    switch self {
    case .malformed: "MalformedJWT: The token provided is not a valid JWT"
    case .badSignature: "JwtSignatureError: Failed to validate JWT signature"
    case .missingClaims: "InvalidJWTToken: Fields `role` and `exp` are required in JWT"
    case .expired(let seconds): "InvalidJWTToken: Token has expired \(seconds) seconds ago"
    }
  }

  /// On a joined channel.
  var systemMessage: String {
    switch self {
    case .malformed: "The token provided is not a valid JWT"
    case .badSignature: ":signature_error"
    case .missingClaims: "Fields `role` and `exp` are required in JWT"
    case .expired(let seconds): "Token has expired \(seconds) seconds ago"
    }
  }
}

/// A token that was accepted.
struct AcceptedToken: Equatable {
  var text: String
  var claims: JSONValue
  /// Seconds since 1970.
  var expiresAt: Double

  var role: String { claims["role"]?.stringValue ?? "" }

  /// - Parameter wallMilliseconds: the calendar time the expiry is compared with; a token is good while it lies before.
  static func check(
    _ text: String, with verifier: any TokenVerifier, wallMilliseconds: Int64
  ) throws(TokenRefusal) -> AcceptedToken {
    let claims: JSONValue
    do throws(TokenProblem) {
      claims = try verifier.claims(of: text.filter { !$0.isWhitespace })
    } catch {
      throw error == .malformed ? .malformed : .badSignature
    }
    guard let role = claims["role"], !role.isNull, let expiry = claims["exp"]?.numberValue?.double else {
      throw .missingClaims
    }
    let token = AcceptedToken(text: text, claims: claims, expiresAt: expiry)
    if let refusal = token.expiry(wallMilliseconds: wallMilliseconds) { throw refusal }
    return token
  }

  func expiry(wallMilliseconds: Int64) -> TokenRefusal? {
    let late = Double(wallMilliseconds) / 1_000 - expiresAt
    return late >= 0 ? .expired(secondsAgo: Int64(exactly: late.rounded(.down)) ?? .max) : nil
  }
}
