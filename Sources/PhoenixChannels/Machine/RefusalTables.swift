import HostKit

/// The tables that say what a refusal means (Realtime wire contract §1, §5, §6, §12).
enum RefusalTables {
  // MARK: Upgrades

  struct UpgradeRefusal {
    var report: FailureReport
    /// An older server answers 403 without a word for everything, so fresh credentials are worth one try.
    var isAmbiguous = false
    /// "500" may hide a refused token.
    var countsAsServerError = false
  }

  static func upgrade(status: Int, body: String?) -> UpgradeRefusal {
    let text = bodyText(body)
    func refusal(_ failureClass: FailureClass, _ fallback: String) -> UpgradeRefusal {
      UpgradeRefusal(report: FailureReport(failureClass, text ?? fallback, status: status))
    }
    switch status {
    case 401:
      if let text, text.contains("API key is missing") { return refusal(.config, text) }
      return refusal(.auth, "the key or token was refused")
    case 403:
      if let text, text.contains("Realtime was disabled") { return refusal(.config, text) }
      var result = refusal(.transient, "refused without a reason: protocol version, key, token or limit")
      result.isAmbiguous = true
      return result
    case 404: return refusal(.config, "no such project")
    case 408, 425: return refusal(.transient, "the server asked to try again")
    case 414, 431: return refusal(.config, "the key is too long for the request")
    case 429: return refusal(.limit, "too many connections or joins")
    case 500:
      var result = refusal(.transient, "the server failed")
      result.countsAsServerError = true
      return result
    case 501...: return refusal(.transient, "the server or its gateway is not available")
    default: return refusal(.config, "not an answer of a Realtime server")
    }
  }

  private static func bodyText(_ body: String?) -> String? {
    guard let body, !body.isEmpty else { return nil }
    guard let json = try? JSONValue(parsing: body) else { return nil }
    return (json["error"] ?? json["message"])?.stringValue
  }

  // MARK: Closes

  static func close(code: UInt16?, reason: String) -> FailureReport {
    let failureClass: FailureClass
    switch code.map(Int.init) {
    // Forced out: join rate, tenant gone. Codes of a proxy are treated with the same care.
    case .some(1001), .some(4000...4999): failureClass = .limit
    default: failureClass = .transient
    }
    return FailureReport(failureClass, reason.isEmpty ? "closed by the server" : reason, closeCode: code)
  }

  // MARK: Joins and channels

  struct ChannelRefusal: Sendable, Hashable {
    enum Scope: Sendable, Hashable {
      case topic
      /// Joining anything else on this connection would be refused too.
      case connection
      /// The node is going away; another one would answer.
      case replaceConnection
    }
    var report: FailureReport
    var scope: Scope = .topic
  }

  /// By the code before the colon; the default is transient.
  private static let codes: [String: (FailureClass, ChannelRefusal.Scope)] = [
    "Unauthorized": (.denied, .topic),
    "InvalidJWTToken": (.auth, .topic),
    "MalformedJWT": (.auth, .topic),
    "JwtSignatureError": (.auth, .topic),
    "JwtSignerError": (.auth, .topic),
    "PrivateOnly": (.config, .topic),
    "TopicNameRequired": (.config, .topic),
    "TenantNotFound": (.config, .connection),
    "RealtimeDisabledForTenant": (.config, .connection),
    "ChannelRateLimitReached": (.limit, .topic),
    "ConnectionRateLimitReached": (.limit, .connection),
    "ClientJoinRateLimitReached": (.limit, .connection),
    "RealtimeRestarting": (.transient, .replaceConnection),
  ]

  /// Older servers send the sentence without the code, and `system` messages never carry one.
  private static let sentences: [(String, FailureClass)] = [
    ("Token has expired", .auth),
    ("Fields `role` and `exp` are required", .auth),
    ("Token expiration time is invalid", .auth),
    ("The token provided is not a valid JWT", .auth),
    ("Failed to validate JWT signature", .auth),
    ("signature_error", .auth),
    ("You do not have permissions to read", .denied),
    ("You no longer have permission to read", .denied),
    ("Too many", .limit),
    ("rate limit", .limit),
    ("message size exceeded", .limit),
    ("only allows private channels", .config),
    ("Replay params are not valid", .config),
    ("Replay is not allowed", .config),
  ]

  static func join(reason: String) -> ChannelRefusal {
    let code = reason.split(separator: ":", maxSplits: 1).first.map(String.init) ?? ""
    if let (failureClass, scope) = codes[code] {
      return ChannelRefusal(report: FailureReport(failureClass, reason), scope: scope)
    }
    // Overload of the database names a code of its own and passes.
    if code.hasPrefix("Database") || code == "IncreaseConnectionPool" {
      return ChannelRefusal(report: FailureReport(.transient, reason))
    }
    return system(message: reason)
  }

  static func system(message: String) -> ChannelRefusal {
    let match = sentences.first { message.contains($0.0) }
    return ChannelRefusal(report: FailureReport(match?.1 ?? .transient, message))
  }
}
