import HostKit

/// JSON web tokens signed with a shared secret (HS256; HS384 and HS512 are understood too).
enum JWT {
  enum Problem: Error, Hashable {
    /// Not three parts of base64 with a header that names a known algorithm and an object of claims.
    case malformed
    /// Signed with another secret.
    case badSignature
  }

  static func sign(_ claims: [String: JSONValue], secret: String) -> String {
    let header: JSONValue = ["alg": "HS256", "typ": "JWT"]
    let signed = [header, .object(claims)].map { Base64.encode(JSONWriter.data($0), .url) }.joined(separator: ".")
    return signed + "." + Base64.encode(Digest.hmac(signed.utf8, key: Array(secret.utf8)), .url)
  }

  /// The claims of a token with a good signature, whatever they say.
  static func claims(of token: String, secret: String) throws(Problem) -> [String: JSONValue] {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let signature = Base64.decode(parts[2], .url),
      let header = Base64.decode(parts[0], .url).flatMap({ try? JSONValue(parsing: $0) }),
      let bits = bits(of: header["alg"]?.stringValue), let payload = Base64.decode(parts[1], .url),
      let claims = (try? JSONValue(parsing: payload))?.objectValue
    else { throw .malformed }
    let signed = token.utf8.dropLast(parts[2].utf8.count + 1)
    guard Digest.areEqual(signature, Digest.hmac(signed, key: Array(secret.utf8), bits: bits)) else {
      throw .badSignature
    }
    return claims
  }

  private static func bits(of algorithm: String?) -> Int? {
    switch algorithm {
    case "HS256": 256
    case "HS384": 384
    case "HS512": 512
    default: nil
    }
  }
}
