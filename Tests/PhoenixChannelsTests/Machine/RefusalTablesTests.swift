import Testing

@testable import PhoenixChannels

/// Realtime wire contract §5, §6 and §12.
@Suite struct RefusalTablesTests {
  @Test(arguments: [
    ("Unauthorized: You do not have permissions to read from this Channel topic: a", FailureClass.denied),
    ("You do not have permissions to read from this Topic", .denied),
    ("InvalidJWTToken: Token has expired 12 seconds ago", .auth),
    ("Token has expired 59 seconds ago", .auth),
    ("InvalidJWTToken: Fields `role` and `exp` are required in JWT", .auth),
    ("MalformedJWT: The token provided is not a valid JWT", .auth),
    ("JwtSignatureError: Failed to validate JWT signature", .auth),
    ("JwtSignerError: x", .auth),
    ("PrivateOnly: This project only allows private channels", .config),
    ("TopicNameRequired: You must provide a topic name", .config),
    ("UnableToReplayMessages: Replay params are not valid", .config),
    ("UnableToReplayMessages: Replay is not allowed for public channels", .config),
    ("UnableToReplayMessages: Realtime was unable to replay messages", .transient),
    ("TenantNotFound: Tenant with the given ID does not exist", .config),
    ("RealtimeDisabledForTenant: Realtime disabled for this tenant", .config),
    ("ChannelRateLimitReached: Too many channels", .limit),
    ("ConnectionRateLimitReached: Too many connected users", .limit),
    ("ClientJoinRateLimitReached: Too many joins per second", .limit),
    ("DatabaseConnectionRateLimitReached: Too many database connections attempts per second", .transient),
    ("DatabaseLackOfConnections: x", .transient),
    ("IncreaseConnectionPool: Please increase your connection pool size", .transient),
    ("InitializingProjectConnection: x", .transient),
    ("Realtime was unable to connect to the project database", .transient),
    ("QueryCanceled: x", .transient), ("MissingPartition: x", .transient), ("TimeoutOnRpcCall: x", .transient),
    ("RealtimeRestarting: Realtime is restarting, please standby", .transient),
    ("Unknown Error on Channel", .transient), ("join crashed", .transient), ("unmatched topic", .transient),
    ("too many channels joined", .transient), ("", .transient), (":", .transient), ("something new", .transient),
  ])
  func joinReasons(reason: String, expected: FailureClass) {
    #expect(RefusalTables.join(reason: reason).report.failureClass == expected)
  }

  @Test func scopesOfJoinReasons() {
    #expect(RefusalTables.join(reason: "ClientJoinRateLimitReached: x").scope == .connection)
    #expect(RefusalTables.join(reason: "TenantNotFound: x").scope == .connection)
    #expect(RefusalTables.join(reason: "RealtimeRestarting: x").scope == .replaceConnection)
    #expect(RefusalTables.join(reason: "ChannelRateLimitReached: x").scope == .topic)
  }

  @Test(arguments: [
    ("Token has expired 0 seconds ago", FailureClass.auth), (":signature_error", .auth),
    ("You no longer have permission to read from this Channel topic: a", .denied),
    ("Too many messages per second", .limit), ("Client presence rate limit exceeded", .limit),
    ("Track message size exceeded", .limit),
    ("Replication connection was not established in time", .transient), ("Node request timeout", .transient),
    ("Query was cancelled, please try again", .transient),
  ])
  func systemMessages(message: String, expected: FailureClass) {
    #expect(RefusalTables.system(message: message).report.failureClass == expected)
  }

  @Test func closeCodes() {
    for (code, expected) in [
      (nil, FailureClass.transient), (1000, .transient), (1001, .limit), (1002, .transient), (1009, .transient),
      (1011, .transient), (1012, .transient), (4000, .limit), (4999, .limit),
    ] as [(UInt16?, FailureClass)] {
      #expect(RefusalTables.close(code: code, reason: "").failureClass == expected)
    }
  }

  @Test func reportsAreShortAndHoldNoTokens() {
    let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmnopqrstuvwxyz"
    let report = RefusalTables.join(reason: "odd \(token)\n\u{1b}[31m " + String(repeating: "word ", count: 200)).report
    #expect(!report.text.contains("eyJ"))
    #expect(!report.text.contains("\n") && !report.text.contains("\u{1b}"))
    #expect(report.text.count <= 200)
    #expect(RefusalTables.close(code: 1001, reason: "x").description == "close 1001: x")
    #expect(RefusalTables.upgrade(status: 503, body: nil).report.description.hasPrefix("HTTP 503: "))
  }
}
