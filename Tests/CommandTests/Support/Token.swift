import HostKit

@testable import LocalStack

/// Access tokens, made here.
enum Token {
  /// With a signature that no server made.
  static func make(subject: String, expiresAt: Int64) -> String {
    make(subject: subject, expiresAt: expiresAt, secret: "nobody's")
  }

  static func make(subject: String, expiresAt: Int64, secret: String) -> String {
    JWT.sign(
      [
        "sub": .string(subject), "role": "authenticated", "aud": "authenticated", "iat": .int(expiresAt - 3600),
        "exp": .int(expiresAt),
      ], secret: secret)
  }
}
