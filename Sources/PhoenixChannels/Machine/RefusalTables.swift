import HostKit

/// The tables that say what a refusal means (Realtime wire contract §1, §5, §6, §12).
///
/// Reports spell the codes and sentences of these tables, never what else a peer wrote: it may quote what it was sent.
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
      UpgradeRefusal(report: FailureReport(failureClass, spelled(text, or: fallback), status: status))
    }
    switch status {
    case 401:
      if let text, text.contains("API key is missing") { return refusal(.config, "API key is missing") }
      return refusal(.auth, "the key or token was refused")
    case 403:
      if let text, text.contains("Realtime was disabled") { return refusal(.config, "Realtime was disabled") }
      var result = refusal(.transient, "refused without a reason: protocol version, key, token or limit")
      result.isAmbiguous = true
      return result
    case 400: return refusal(.config, "the server did not take it for an upgrade")
    case 404: return refusal(.config, "no such project")
    case 100...199:
      // libwebsockets takes an interim answer for the final one and never sees the 101 behind it. No Realtime server sends
      // one, since none was asked for; a proxy that does will mostly not do so again.
      return UpgradeRefusal(
        report: FailureReport(
          .transient, "an interim answer came first, which is not understood", status: status, isUnknown: true))
    case 408, 425: return refusal(.transient, "the server asked to try again")
    case 414, 431: return refusal(.config, "the key is too long for the request")
    case 429: return refusal(.limit, "too many connections or joins")
    case 500:
      var result = refusal(.transient, "the server failed")
      result.countsAsServerError = true
      return result
    case 502...504, 520...530: return refusal(.transient, "the server or its gateway is not available")
    default:
      return UpgradeRefusal(
        report: FailureReport(
          .transient, spelled(text, or: "not an answer of a Realtime server"), status: status, isUnknown: true))
    }
  }

  private static func bodyText(_ body: String?) -> String? {
    guard let body, !body.isEmpty else { return nil }
    guard let json = try? JSONValue(parsing: body) else { return nil }
    return (json["error"] ?? json["message"])?.stringValue.map(beginning)
  }

  // MARK: Closes

  static func close(code: UInt16?, reason: String) -> FailureReport {
    let known: (failureClass: FailureClass, text: String)? =
      switch code.map(Int.init) {
      // A close frame without a code, or with one that the transport could not tell.
      case nil: (.transient, "the server closed the connection")
      case 1005, 1006: (.transient, "the connection was cut")
      case 1000: (.transient, "closed by the server")
      // Forced out: join rate, tenant gone.
      case 1001: (.limit, "the server sent us away")
      case 1002, 1007: (.transient, "the server could not read what it was sent")
      case 1009: (.transient, "a message was too large for the server")
      case 1011: (.transient, "the server failed")
      case 1012: (.transient, "the server restarts")
      // Of a proxy; treated with the same care as being sent away.
      case .some(4000...4999): (.limit, "closed by the server")
      default: nil
      }
    return FailureReport(
      known?.failureClass ?? .transient, spelled(reason, or: known?.text ?? "closed by the server"),
      closeCode: code, isUnknown: known == nil)
  }

  // MARK: Joins and channels

  struct ChannelRefusal: Sendable, Hashable {
    enum Scope: Sendable, Hashable {
      case topic
      /// Joining anything else on this connection would be refused too.
      case connection
      /// The node is going away; another one would answer.
      case replaceConnection
      /// This connection holds as many channels as the server allows; one must go first.
      case room
    }
    var report: FailureReport
    var scope: Scope = .topic
  }

  /// By the code before the colon.
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
    "ChannelRateLimitReached": (.limit, .room),
    "ConnectionRateLimitReached": (.limit, .connection),
    "ClientJoinRateLimitReached": (.limit, .connection),
    "RealtimeRestarting": (.transient, .replaceConnection),
    // The database is overloaded.
    "DatabaseConnectionRateLimitReached": (.transient, .topic),
    "DatabaseLackOfConnections": (.transient, .topic),
    "IncreaseConnectionPool": (.transient, .topic),
    "InitializingProjectConnection": (.transient, .topic),
    "UnableToConnectToProject": (.transient, .topic),
    "QueryCanceled": (.transient, .topic),
    "MissingPartition": (.transient, .topic),
    "TimeoutOnRpcCall": (.transient, .topic),
    "ErrorOnRpcCall": (.transient, .topic),
    "MusterJoinError": (.transient, .topic),
    "UnknownErrorOnChannel": (.transient, .topic),
  ]

  /// Older servers send the sentence without the code, and `system` messages never carry one.
  private static let sentences: [(String, FailureClass)] = [
    ("Token has expired", .auth),
    ("Fields `role` and `exp` are required", .auth),
    ("Token expiration time is invalid", .auth),
    ("The token provided is not a valid JWT", .auth),
    ("Failed to validate JWT signature", .auth),
    ("Failed to generate JWT signer", .auth),
    ("signature_error", .auth),
    ("You do not have permissions to read", .denied),
    ("You no longer have permission to read", .denied),
    ("Too many channels", .limit),
    ("Too many connected users", .limit),
    ("Too many joins per second", .limit),
    ("Too many messages per second", .limit),
    ("Too many presence messages per second", .limit),
    ("presence rate limit exceeded", .limit),
    ("message size exceeded", .limit),
    ("only allows private channels", .config),
    ("You must provide a topic name", .config),
    ("Replay params are not valid", .config),
    ("Replay is not allowed", .config),
    ("Tenant with the given ID does not exist", .config),
    ("Tenant not found", .config),
    ("Realtime disabled for this tenant", .config),
    ("Realtime was disabled for this tenant", .config),
    ("Error connecting to Realtime", .transient),
    ("unable to replay messages", .transient),
    ("Too many database connections", .transient),
    ("increase your connection pool", .transient),
    ("unable to connect to the project database", .transient),
    ("Realtime is restarting", .transient),
    ("Query was cancelled", .transient),
    ("Node request timeout", .transient),
    ("RPC call error", .transient),
    ("Replication connection was not established in time", .transient),
    ("Unknown Error on Channel", .transient),
    ("join crashed", .transient),
    ("too many channels joined", .transient),
    ("unmatched topic", .transient),
  ]

  /// Codes whose meaning depends on the sentence beside them.
  private static let codesOfSentences: Set = ["UnableToReplayMessages"]

  static func join(reason: String) -> ChannelRefusal {
    let reason = beginning(of: reason)
    let code = reason.split(separator: ":", maxSplits: 1).first.map(String.init) ?? ""
    if let (failureClass, scope) = codes[code] {
      return ChannelRefusal(report: FailureReport(failureClass, spelled(reason, or: code)), scope: scope)
    }
    return system(message: reason)
  }

  /// What is not in the tables passes by itself, and is counted.
  static func system(message: String) -> ChannelRefusal {
    let message = beginning(of: message)
    let text = spelled(message, or: message.isEmpty ? "refused without a reason" : "refused")
    guard let match = sentences.first(where: { message.contains($0.0) }) else {
      return ChannelRefusal(report: FailureReport(.transient, text, isUnknown: true))
    }
    return ChannelRefusal(report: FailureReport(match.1, text))
  }

  /// An error of `postgres_changes`, which ends nothing.
  static func subscription(message: String) -> FailureReport {
    FailureReport(.config, spelled(beginning(of: message), or: "Unable to subscribe"))
  }

  // MARK: Words

  /// What is known stands at the beginning, and a peer may send a megabyte.
  private static func beginning(of text: String) -> String {
    text.utf8.count <= 512 ? text : String(decoding: text.utf8.prefix(512), as: UTF8.self)
  }

  /// What may be said of a peer's text: the code and the sentence in it that are known.
  /// - Parameter words: what it means, for a text that holds neither, and for none.
  private static func spelled(_ text: String?, or words: String) -> String {
    guard let text, !text.isEmpty else { return words }
    let code = text.split(separator: ":", maxSplits: 1).first.map(String.init).flatMap { word in
      codes[word] != nil || codesOfSentences.contains(word) ? word : nil
    }
    let sentence = sentences.first { text.contains($0.0) }?.0
    switch (code, sentence) {
    case (let code?, let sentence?): return "\(code): \(sentence)"
    case (let known?, nil), (nil, let known?): return known
    case (nil, nil): return text == words ? words : "\(words) (text withheld)"
    }
  }
}
