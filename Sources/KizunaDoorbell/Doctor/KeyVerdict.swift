import HostKit

/// What can be seen of a publishable key, and what the server says to it.
enum KeyVerdict {
  private static let hosted = ".supabase.co"

  /// - Parameters:
  ///   - status: of the server's answer to a request with the key alone; nil when there was none.
  ///   - now: milliseconds since 1970.
  static func finding(_ key: String, server: ServerURL, status: Int?, now: Int64) -> Finding {
    if let problem = problem(key, server: server, now: now) { return problem }
    switch status {
    case nil: return .skipped(.key, "the server did not answer")
    case 401?, 403?:
      return .failed(
        .key, .authentication, "the server refused the publishable key (HTTP \(status ?? 0))",
        remedy: "give the publishable (anon) key of this project as publishableKey")
    case .some: return .ok(.key, "the server takes the publishable key")
    }
  }

  /// Why it cannot be the right one; nil when only the server can tell.
  private static func problem(_ key: String, server: ServerURL, now: Int64) -> Finding? {
    func wrong(_ text: String, _ remedy: String) -> Finding { .failed(.key, .configuration, text, remedy: remedy) }
    let isSecret = "the key given as publishableKey is a secret key, for which no policy holds"
    let replace = "take it off this host, and give the project's publishable (anon) key"
    if key.hasPrefix("sb_secret_") { return wrong(isSecret, replace) }
    guard let claims = UnverifiedToken(key) else { return nil }
    switch claims.role {
    case "service_role": return wrong(isSecret, replace)
    case "authenticated":
      return wrong("the key given as publishableKey is a user's token", "give the project's publishable (anon) key")
    default: break
    }
    if let project = claims.claims["ref"]?.stringValue, server.host.hasSuffix(hosted),
      server.host != project.lowercased() + hosted
    {
      return wrong(
        "the publishable key belongs to another project than the address",
        "give the key and the address of the same project")
    }
    if let end = claims.expiresAt, end <= now / 1000 {
      return .failed(.key, .authentication, "the publishable key has ended", remedy: "give the project's present key")
    }
    return nil
  }
}
