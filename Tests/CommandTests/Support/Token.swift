import HostKit

/// Access tokens with a signature that no server made.
enum Token {
  static func make(subject: String, expiresAt: Int64) -> String {
    let parts: [JSONValue] = [
      ["alg": "HS256", "typ": "JWT"],
      [
        "sub": .string(subject), "role": "authenticated", "iat": .int(expiresAt - 3600), "exp": .int(expiresAt),
      ],
    ]
    return parts.map { Base64.encode(JSONWriter.data($0), .url) }.joined(separator: ".") + ".bm90IHNpZ25lZA"
  }
}
