/// The claims of a JSON web token, read without checking its signature: enough for a client to know whose token it holds
/// and when to replace it. The text of the token is not kept.
public struct UnverifiedToken: Sendable, Hashable {
  public let claims: [String: JSONValue]

  /// Nil when the text is not three parts of which the second is an object.
  public init?(_ token: String) {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let payload = Base64.decode(parts[1], .url),
      let claims = try? JSONValue(parsing: payload).objectValue
    else { return nil }
    self.claims = claims
  }

  /// The user the token is for: `sub`, nil when absent or empty.
  public var subject: String? {
    claims["sub"]?.stringValue.flatMap { $0.isEmpty ? nil : $0 }
  }

  public var role: String? { claims["role"]?.stringValue }

  /// Seconds since 1970: `exp`; decimals are rounded.
  public var expiresAt: Int64? { seconds("exp") }

  /// Seconds since 1970: `iat`.
  public var issuedAt: Int64? { seconds("iat") }

  private func seconds(_ claim: String) -> Int64? {
    claims[claim]?.numberValue.flatMap { $0.int64 ?? Int64(exactly: $0.double.rounded()) }
  }
}
