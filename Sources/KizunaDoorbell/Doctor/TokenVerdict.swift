import HostKit

/// What the claims of an access token mean, before anybody is asked about them.
struct TokenVerdict {
  /// A token that ends so soon, milliseconds, is as good as over.
  private static let margin: Int64 = 60_000
  /// What PostgREST allows a token to come from the future, milliseconds.
  private static let tolerance: Int64 = 30_000

  /// Nil when the text is no JSON web token.
  var claims: UnverifiedToken?
  /// The text is the publishable key.
  var isKey = false
  var server: ServerURL
  /// Milliseconds since 1970 by the server's clock, or this host's while the server's is not known.
  var now: Int64
  /// The user whose rows the database holds.
  var owner: String?

  var finding: Finding { failure ?? warning ?? .ok(.token, "role authenticated, names a user, good for \(left) s") }

  /// Seconds. A claim may hold any number.
  private var left: Int64 {
    let end = claims?.expiresAt ?? 0
    let (left, overflow) = end.subtractingReportingOverflow(now / 1000)
    return overflow ? -.max : max(left, -.max)
  }

  private static let userToken = "give the token of a signed-in user"

  private var failure: Finding? {
    func refused(_ text: String, _ remedy: String = Self.userToken) -> Finding {
      .failed(.token, .authentication, text, remedy: remedy)
    }
    if isKey { return refused("the access token is the publishable key, which stands for nobody") }
    guard let claims else {
      return refused("the access token is no JSON web token", "give the access_token that the sign-in answered")
    }
    switch claims.role {
    case "authenticated": break
    case "anon": return refused("the access token has the role anon, so it is a key and not a user's")
    case "service_role":
      return .failed(
        .token, .configuration, "the access token has the role service_role, for which no policy holds",
        remedy: "take it off this host, and \(Self.userToken)")
    case nil: return refused("the access token has no role")
    case .some: return refused("the access token has another role than authenticated")
    }
    guard let subject = claims.subject else { return refused("the access token names no user (claim sub)") }
    guard claims.expiresAt != nil else {
      return refused("the access token does not say when it ends (claim exp), and Realtime refuses such tokens")
    }
    if left <= 0 {
      return refused("the access token ended \(-left) s ago", "get a new one, and check this machine's clock")
    }
    if let owner, owner != subject {
      return .failed(
        .token, .configuration, sentence: SoftBlock.anotherUser, otherwise: "sign in as that user")
    }
    return nil
  }

  private var warning: Finding? {
    if let issued = claims?.issuedAt, issued > (now + Self.tolerance) / 1000 {
      return .warning(
        .token, "the access token was made in the future, and servers refuse such tokens",
        remedy: "correct the clock of whoever made it")
    }
    // An address only in tokens of Supabase Auth.
    let issuer = claims?.claims["iss"]?.stringValue.flatMap { try? ServerURL($0) }
    if let issuer, issuer.host != server.host {
      return .warning(
        .token, "the access token was made by \(issuer.host), and the server is \(server.host)",
        remedy: "nothing, if both are names of one project; otherwise sign in to this server")
    }
    if left < Self.margin / 1000 {
      return .warning(.token, "the access token is good for \(left) s only", remedy: "get a new one")
    }
    return nil
  }
}
