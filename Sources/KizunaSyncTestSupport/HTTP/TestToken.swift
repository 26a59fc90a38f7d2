import HostKit

/// Tokens for tests: right in form, with a signature that means nothing.
public enum TestToken {
  /// - Parameters:
  ///   - subject: the user.
  ///   - issuedAt: seconds since 1970; left out when nil.
  ///   - expiresAt: likewise.
  public static func user(
    _ subject: String, issuedAt: Int64? = nil, expiresAt: Int64? = nil, claims: [String: JSONValue] = [:]
  ) -> String {
    var members: [String: JSONValue] = ["sub": .string(subject), "role": "authenticated"]
    if let issuedAt { members["iat"] = .int(issuedAt) }
    if let expiresAt { members["exp"] = .int(expiresAt) }
    members.merge(claims) { _, given in given }
    let parts: [JSONValue] = [["alg": "HS256", "typ": "JWT"], .object(members)]
    return parts.map { Base64.encode(JSONWriter.data($0), .url) }.joined(separator: ".") + ".c2lnbmF0dXJl"
  }
}
