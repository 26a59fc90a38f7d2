import HostKit
import PhoenixChannels
import Testing

/// What the machine does about each refusal and ending of the Realtime wire contract (§5, §6, §12), and about unknown
/// ones. The upgrade answers (§1) are D29.
@Suite struct ClassificationTests {
  /// What follows from a refused join or an ended channel.
  enum Behaviour: Sendable {
    /// The topic alone, after a growing delay.
    case backsOff
    /// The topic alone, after the longest delay.
    case backsOffLong
    /// Fresh credentials are asked for once; until then nothing is joined.
    case asks
    /// The topic alone, after minutes or with another token.
    case parks
    /// As `parks`, and the close that follows suspends the connection.
    case parksAll
    /// No topic is joined for a long time; the close that follows delays the connection as long.
    case holdsAll
    /// No topic is joined for minutes, or until one leaves.
    case awaitsRoom
    /// Another connection is made.
    case replaces
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    let reason: String
    let failureClass: FailureClass
    let behaviour: Behaviour
    var isUnknown = false
    var testDescription: String { reason }
  }

  static let joins: [Refusal] =
    ["Unauthorized: You do not have permissions to read from this Channel topic: b", "Unauthorized: policy raised"]
    .map { Refusal(reason: $0, failureClass: .denied, behaviour: .parks) }
    + [
      "InvalidJWTToken: Token has expired 12 seconds ago",
      "InvalidJWTToken: Fields `role` and `exp` are required in JWT",
      "InvalidJWTToken: Token expiration time is invalid", "MalformedJWT: The token provided is not a valid JWT",
      "JwtSignatureError: Failed to validate JWT signature", "JwtSignerError: no key",
      "Token has expired 59 seconds ago", "Failed to validate JWT signature",
    ].map { Refusal(reason: $0, failureClass: .auth, behaviour: .asks) }
    + [
      "PrivateOnly: This project only allows private channels", "TopicNameRequired: You must provide a topic name",
      "UnableToReplayMessages: Replay params are not valid",
      "UnableToReplayMessages: Replay is not allowed for public channels",
    ].map { Refusal(reason: $0, failureClass: .config, behaviour: .parks) }
    + [
      "TenantNotFound: Tenant with the given ID does not exist",
      "RealtimeDisabledForTenant: Realtime disabled for this tenant",
    ].map { Refusal(reason: $0, failureClass: .config, behaviour: .parksAll) }
    + [
      Refusal(reason: "ChannelRateLimitReached: Too many channels", failureClass: .limit, behaviour: .awaitsRoom),
      Refusal(
        reason: "ConnectionRateLimitReached: Too many connected users", failureClass: .limit, behaviour: .holdsAll),
      Refusal(
        reason: "ClientJoinRateLimitReached: Too many joins per second", failureClass: .limit, behaviour: .holdsAll),
      Refusal(
        reason: "RealtimeRestarting: Realtime is restarting, please standby", failureClass: .transient,
        behaviour: .replaces),
    ]
    + [
      "DatabaseConnectionRateLimitReached: Too many database connections attempts per second",
      "DatabaseLackOfConnections: none left", "IncreaseConnectionPool: Please increase your connection pool size",
      "InitializingProjectConnection: soon",
      "UnableToConnectToProject: Realtime was unable to connect to the project database",
      "Realtime was unable to connect to the project database", "QueryCanceled: x", "MissingPartition: x",
      "TimeoutOnRpcCall: Node request timeout", "ErrorOnRpcCall: x", "MusterJoinError: x",
      "UnableToReplayMessages: Realtime was unable to replay messages", "UnknownErrorOnChannel: x",
      "Unknown Error on Channel", "join crashed", "too many channels joined", "unmatched topic",
    ].map { Refusal(reason: $0, failureClass: .transient, behaviour: .backsOff) }
    + ["", ":", "SomethingNew: of a later server", "something new"]
    .map { Refusal(reason: $0, failureClass: .transient, behaviour: .backsOff, isUnknown: true) }

  @Test(arguments: joins)
  func refusedJoins(refusal: Refusal) {
    var driver = MachineDriver.joined(topics: ["a"], credentials: "t")
    driver.subscribe("b")
    driver.subscribe("c")
    driver.forget()
    driver.refuse("b", refusal.reason)
    expect(refusal, &driver, topic: "b")
  }

  /// `system` errors of a joined channel, each followed by its `phx_close`.
  static let messages: [Refusal] =
    [
      "Token has expired 0 seconds ago", "Fields `role` and `exp` are required in JWT",
      "The token provided is not a valid JWT", ":signature_error",
    ].map { Refusal(reason: $0, failureClass: .auth, behaviour: .asks) }
    + [
      "You do not have permissions to read from this Channel topic: b",
      "You no longer have permission to read from this Channel topic: b",
    ].map { Refusal(reason: $0, failureClass: .denied, behaviour: .parks) }
    + [
      "Too many messages per second", "Too many presence messages per second", "Client presence rate limit exceeded",
      "Track message size exceeded",
    ].map { Refusal(reason: $0, failureClass: .limit, behaviour: .backsOffLong) }
    + [
      "Realtime was unable to connect to the project database", "Query was cancelled, please try again",
      "Node request timeout", "RPC call error: x", "Replication connection was not established in time",
    ].map { Refusal(reason: $0, failureClass: .transient, behaviour: .backsOff) }
    + ["{:error, :other}", "something new"]
    .map { Refusal(reason: $0, failureClass: .transient, behaviour: .backsOff, isUnknown: true) }

  @Test(arguments: messages)
  func systemMessages(refusal: Refusal) {
    var driver = MachineDriver.joined(topics: ["a", "b"], credentials: "t")
    driver.forget()
    driver.receive(
      "system", "b", joinRef: driver.joinRef("b"),
      ["extension": "system", "status": "error", "message": .string(refusal.reason), "channel": "b"])
    // The announcement alone ends nothing.
    #expect(driver.state("b") == .joined)
    driver.receive("phx_close", "b", joinRef: driver.joinRef("b"), ref: driver.joinRef("b"))
    driver.subscribe("c")
    expect(refusal, &driver, topic: "b")
  }

  private func expect(_ refusal: Refusal, _ driver: inout MachineDriver, topic: String) {
    let status = driver.status.topics.first { $0.topic.name == topic }
    #expect(status?.lastFailure?.failureClass == refusal.failureClass)
    #expect(status?.lastFailure?.isUnknown == refusal.isUnknown)
    #expect(driver.status.counters.refusalsUnknown == (refusal.isUnknown ? 1 : 0))
    #expect(driver.status.counters.topicFailures == [refusal.failureClass: 1])
    if case .replaces = refusal.behaviour {
      #expect(driver.closes == 1)
      #expect(driver.reconnectIn == 1)
      return
    }
    #expect(driver.closes == 0)
    #expect(driver.state("a") == .joined)
    driver.forget()
    switch refusal.behaviour {
    case .replaces: break
    case .backsOff:
      #expect(driver.timers.contains { $0.token.kind == .rejoin(MachineDriver.topic(topic)) })
      driver.acceptJoins()
      driver.advance(1)
      #expect(driver.joins(topic).count == 1)
      #expect(driver.state("c") == .joined)
    case .backsOffLong:
      driver.acceptJoins()
      driver.advanceAnswering(29)
      #expect(driver.joins(topic).isEmpty)
      driver.advance(1)
      #expect(driver.joins(topic).count == 1)
    case .asks:
      #expect(driver.status.counters.credentialRequests == 2)
      driver.advanceAnswering(3_600)
      #expect(driver.joins(topic).isEmpty)
      driver.feed(.credentials(.token("u")))
      driver.acceptJoins()
      #expect(driver.joins(topic).count == 1)
    case .parks, .parksAll:
      guard case .denied(let reason) = driver.state(topic) else {
        Issue.record("not denied")
        return
      }
      // What of it may be spelled is `FailureReportTests`.
      #expect(!reason.isEmpty && refusal.reason.contains(reason.prefix { $0 != ":" }))
      if case .parksAll = refusal.behaviour {
        var closed = driver
        closed.feed(.closed(code: 1001, reason: ""))
        #expect(closed.reconnectIn == 450)
        #expect(closed.status.lastFailure?.failureClass == .config)
      }
      driver.acceptJoins()
      driver.advanceAnswering(449)
      #expect(driver.joins(topic).isEmpty)
      var waiting = driver
      waiting.advance(1)
      #expect(waiting.joins(topic).count == 1)
      driver.feed(.credentials(.token("u")))
      #expect(driver.joins(topic).count == 1)
    case .holdsAll:
      driver.advanceAnswering(59)
      #expect(driver.joins().isEmpty)
      var closed = driver
      driver.advance(1)
      #expect(driver.joins().count == 1)
      closed.feed(.closed(code: 1001, reason: ""))
      #expect(closed.reconnectIn == 60)
      #expect(closed.status.lastFailure?.failureClass == .limit)
    case .awaitsRoom:
      driver.advanceAnswering(449)
      #expect(driver.joins().isEmpty)
      var left = driver
      driver.advance(1)
      #expect(driver.joins().map(\.topic) == ["realtime:b"])
      left.unsubscribe("a")
      #expect(left.frames.suffix(2).map(\.event) == ["phx_leave", "phx_join"])
    }
    #expect(driver.rules.violations == [])
  }

  /// A channel that the server ends makes room as well.
  @Test func roomThatTheServerMakes() {
    var driver = MachineDriver.joined(topics: ["a"])
    driver.subscribe("b")
    driver.refuse("b", "ChannelRateLimitReached: Too many channels")
    driver.forget()
    driver.receive("phx_close", "a", joinRef: driver.joinRef("a"), ref: driver.joinRef("a"))
    #expect(driver.joins().map(\.topic) == ["realtime:b"])
    #expect(driver.rules.violations == [])
  }

  struct Close: Sendable {
    let code: UInt16?
    let failureClass: FailureClass
    var isUnknown = false
  }

  static let closes: [Close] =
    [nil, 1000, 1002, 1005, 1006, 1007, 1009, 1011, 1012].map { Close(code: $0, failureClass: .transient) }
    + [1001, 4000, 4001, 4999].map { Close(code: $0, failureClass: .limit) }
    + [1003, 1008, 1010, 1013, 1014, 1015, 3000, 3999, 5000].map {
      Close(code: $0, failureClass: .transient, isUnknown: true)
    }

  @Test(arguments: closes)
  func closeCodes(close: Close) {
    var driver = MachineDriver.joined(topics: ["a"])
    driver.feed(.closed(code: close.code, reason: ""))
    #expect(driver.status.lastFailure?.failureClass == close.failureClass)
    #expect(driver.status.lastFailure?.closeCode == close.code)
    #expect(driver.reconnectIn == (close.failureClass == .limit ? 60 : 1))
    #expect(driver.status.counters.connectionFailures == [close.failureClass: 1])
    #expect(driver.status.counters.refusalsUnknown == (close.isUnknown ? 1 : 0))
    #expect(driver.rules.violations == [])
  }

  @Test func theRoundTripOfAHeartbeatIsReported() {
    var driver = MachineDriver.joined(topics: ["a"])
    #expect(driver.status.lastRoundTrip == nil)
    while driver.heartbeatRefs.isEmpty { driver.advance(0.5) }
    let late = driver.heartbeatRefs
    driver.advance(0.25)
    driver.answerHeartbeat()
    #expect(driver.heartbeatRefs == late)
    let first = driver.status.lastRoundTrip ?? 0
    #expect(first >= .milliseconds(250) && first <= .milliseconds(750))
    // It outlives the connection.
    driver.feed(.closed(code: 1000, reason: ""))
    driver.advance(1)
    driver.feed(.opened)
    #expect(driver.status.lastRoundTrip == first)
  }
}
