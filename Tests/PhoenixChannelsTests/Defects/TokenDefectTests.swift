import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §18, kinds E and L: tokens, refusals and limits.
@Suite struct TokenDefectTests {
  @Test func d12_everyJoinCarriesTheNewestToken() {
    var driver = MachineDriver.joined(topics: ["a", "b"], credentials: "one")
    driver.forget()
    driver.feed(.credentials(.token("two")))
    #expect(driver.sent("access_token").map(\.topic) == ["realtime:a", "realtime:b"])
    #expect(driver.sent("access_token").allSatisfy { $0.json == ["access_token": "two"] })
    // The same one again is no news.
    driver.feed(.credentials(.token("two")))
    #expect(driver.sent("access_token").count == 2)
    driver.receive("phx_error", "a", joinRef: "1", ref: "1")
    driver.advance(1)
    #expect(driver.joins("a").last?.json?["access_token"] == "two")
    driver.feed(.failed("reset", isConfiguration: false))
    driver.advance(1)
    driver.feed(.opened)
    driver.acceptJoins()
    #expect(driver.joins().suffix(2).allSatisfy { $0.json?["access_token"] == "two" })
    #expect(driver.rules.violations == [])
  }

  /// A token that ends within the minute is renewed before anything is joined with it.
  @Test func d12_joinsWaitForTheSuccessorOfAnEndingToken() {
    var driver = MachineDriver.joined(topics: ["a"], credentials: "one")
    driver.feed(.failed("reset", isConfiguration: false))
    driver.advance(1)
    driver.forget()
    driver.feed(.credentials(.ending))
    driver.feed(.opened)
    #expect(driver.joins().isEmpty)
    #expect(driver.effects.filter { if case .requestCredentials(false) = $0 { true } else { false } }.count == 1)
    driver.feed(.credentials(.token("two")))
    #expect(driver.joins("a").map { $0.json?["access_token"] } == ["two"])
    // Where there is no other one, it must do.
    for update in [CredentialUpdate.unavailable, .token("two")] {
      driver.acceptJoins()
      driver.feed(.failed("reset", isConfiguration: false))
      driver.advance(driver.reconnectIn ?? 0)
      driver.forget()
      driver.feed(.credentials(.ending))
      driver.feed(.opened)
      #expect(driver.joins().isEmpty)
      driver.feed(.credentials(update))
      #expect(driver.joins("a").map { $0.json?["access_token"] } == ["two"])
    }
    #expect(driver.rules.violations == [])
  }

  @Test func d12_aTokenThatComesDuringAJoinFollowsIt() {
    var driver = MachineDriver.open(credentials: "one")
    driver.feed(.credentials(.token("two")))
    #expect(driver.sent("access_token").isEmpty)
    driver.acceptJoins()
    #expect(driver.sent("access_token").map { $0.json?["access_token"] } == ["two"])
  }

  @Test func d13_withdrawnCredentialsAreNotUsedAgain() {
    for prepare: (inout MachineDriver) -> Void in [
      { _ in }, { $0.acceptJoins() }, { $0.refuse("a", "UnableToConnectToProject: x") },
      { $0.feed(.failed("reset", isConfiguration: false)) },
    ] {
      var driver = MachineDriver.open(credentials: "dead")
      prepare(&driver)
      driver.forget()
      driver.feed(.credentials(.withdrawn))
      driver.feed(.closed(code: 1000, reason: ""))
      driver.advance(7_200)
      #expect(driver.frames.isEmpty)
      #expect(driver.connects == 0)
      #expect(driver.status.state == .awaitingCredentials)
      #expect(driver.timers.isEmpty)
      driver.feed(.credentials(.token("alive")))
      driver.advance(30)
      driver.feed(.opened)
      driver.acceptJoins()
      #expect(driver.joins().map { $0.json?["access_token"] } == ["alive"])
      #expect(driver.rules.violations == [])
    }
  }

  @Test(arguments: PhoenixVersion.allCases)
  func d14_anExpiredTokenEndsOneChannelOfThree(version: PhoenixVersion) {
    var driver = MachineDriver.joined(topics: ["a", "b", "c"], credentials: "old")
    driver.forget()
    let joinRef: String? = version == .v2 ? "2" : nil
    driver.receive(
      "system", "b", joinRef: joinRef,
      [
        "extension": "system", "status": "error", "message": "Token has expired 0 seconds ago", "channel": "b",
      ])
    driver.receive("phx_close", "b", joinRef: joinRef, ref: "2")
    #expect(driver.asks == [true])
    #expect(driver.state("a") == .joined && driver.state("c") == .joined)
    driver.advance(2)
    #expect(driver.joins().isEmpty)
    driver.feed(.credentials(.token("new")))
    #expect(driver.joins().map(\.topic) == ["realtime:b"])
    #expect(driver.joins()[0].json?["access_token"] == "new")
    driver.accept("b")
    #expect(driver.rings == [ConnectionRing(topics: [MachineDriver.topic("b")], cause: .joined, receivedAt: 1)])
    #expect(driver.asks == [true])
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  @Test func d14_refusedAgainItWaitsForAPush() {
    var driver = MachineDriver.open(credentials: "old")
    driver.refuse("a", "InvalidJWTToken: Token has expired 3 seconds ago")
    driver.feed(.credentials(.token("new")))
    driver.refuse("a", "JwtSignatureError: Failed to validate JWT signature")
    #expect(driver.asks == [false, true])
    #expect(driver.status.state == .awaitingCredentials)
    driver.feed(.closed(code: 1000, reason: ""))
    driver.forget()
    driver.advance(7_200)
    #expect(driver.effects.isEmpty)
    driver.feed(.credentials(.token("good")))
    driver.advance(30)
    driver.feed(.opened)
    driver.acceptJoins()
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  /// Accepts the join that is out and ends the channel with the words of a refused token.
  private static func acceptAndEnd(_ driver: inout MachineDriver, _ topic: String, _ message: String) {
    guard driver.state(topic) == .joining, let ref = driver.joinRef(topic) else { return }
    driver.accept(topic)
    driver.receive(
      "system", topic, joinRef: ref,
      ["extension": "system", "status": "error", "message": .string(message), "channel": .string(topic)])
    driver.receive("phx_close", topic, joinRef: ref, ref: ref)
  }

  /// An accepted join shows nothing when the channel is ended with the next breath.
  @Test(arguments: ["Token has expired 0 seconds ago", ":signature_error"])
  func d32_refusedAfterEachAcceptedJoinItAsksOnce(message: String) {
    var driver = MachineDriver.open(credentials: "t0")
    for round in 1...50 {
      Self.acceptAndEnd(&driver, "a", message)
      if case .awaitingCredentials = driver.status.state { break }
      driver.feed(.credentials(.token("t\(round)")))
      driver.advance(1)
    }
    #expect(driver.asks == [false, true])
    #expect(driver.joins("a").count == 2)
    #expect(driver.status.state == .awaitingCredentials)
    driver.feed(.closed(code: 1000, reason: ""))
    driver.forget()
    driver.advance(3_600)
    #expect(driver.effects.isEmpty)
    #expect(driver.rules.violations == [])
  }

  /// A channel that stands beside it proves a token only by standing with that one.
  @Test func d32_aTopicThatStandsDoesNotLetAnotherSpin() {
    var driver = MachineDriver.joined(topics: ["a"], credentials: "t0")
    driver.advanceAnswering(40)
    driver.subscribe("b")
    var answered = 0
    let end = driver.now + .seconds(3_600)
    driver.forget()
    while driver.now < end {
      Self.acceptAndEnd(&driver, "b", "Token has expired 0 seconds ago")
      if driver.asks.count > answered {
        answered = driver.asks.count
        driver.feed(.credentials(.token("t\(answered)")))
      }
      driver.advanceAnswering(1)
    }
    #expect(driver.asks.count <= 2)
    #expect(driver.joins("b").count <= 3)
    #expect(driver.state("a") == .joined)
    #expect(driver.rules.violations == [])
  }

  /// A token that was good for a while may be replaced again when it is refused later.
  @Test(arguments: [(29.0, [false, true]), (30.0, [false, true, true])])
  func d32_aTokenProvesGoodByStanding(seconds: Double, asks: [Bool]) {
    var driver = MachineDriver.open(credentials: "t0")
    Self.acceptAndEnd(&driver, "a", ":signature_error")
    driver.feed(.credentials(.token("t1")))
    driver.accept("a")
    let joined = driver.now
    while driver.now < joined + .seconds(seconds) { driver.advanceAnswering(1) }
    driver.receive(
      "system", "a", joinRef: driver.joinRef("a"),
      ["extension": "system", "status": "error", "message": "Token has expired 0 seconds ago"])
    driver.receive("phx_close", "a", joinRef: driver.joinRef("a"), ref: "1")
    #expect(driver.asks == asks)
    #expect(driver.rules.violations == [])
  }

  /// The session owner has nothing newer to offer.
  @Test func d14_theSameTokenAgainIsNotTried() {
    var driver = MachineDriver.open(credentials: "old")
    driver.refuse("a", "Token has expired 59 seconds ago")
    driver.forget()
    driver.feed(.credentials(.token("old")))
    #expect(driver.joins().isEmpty)
    #expect(driver.status.state == .awaitingCredentials)
  }

  struct Upgrade: Sendable {
    var status: Int
    var body: String?
    var expected: FailureClass
  }

  static let upgrades: [Upgrade] = [
    Upgrade(status: 400, body: nil, expected: .config),
    Upgrade(status: 401, body: #"{"error":"API key is missing"}"#, expected: .config),
    Upgrade(status: 401, body: #"{"error":"Token has expired"}"#, expected: .auth),
    Upgrade(status: 401, body: #"{"error":"Failed to validate JWT signature"}"#, expected: .auth),
    Upgrade(status: 401, body: #"{"error":"The token provided is not a valid JWT"}"#, expected: .auth),
    Upgrade(status: 401, body: #"{"error":"Fields `role` and `exp` are required in JWT"}"#, expected: .auth),
    Upgrade(status: 401, body: nil, expected: .auth),
    Upgrade(status: 403, body: #"{"error":"Realtime was disabled for this tenant"}"#, expected: .config),
    Upgrade(status: 403, body: "", expected: .transient),
    Upgrade(status: 404, body: #"{"error":"Tenant not found"}"#, expected: .config),
    Upgrade(status: 414, body: nil, expected: .config),
    Upgrade(status: 431, body: nil, expected: .config),
    Upgrade(status: 429, body: #"{"error":"Too many connected users"}"#, expected: .limit),
    Upgrade(status: 429, body: "<html>", expected: .limit),
    Upgrade(status: 500, body: #"{"error":"Error connecting to Realtime"}"#, expected: .transient),
    Upgrade(status: 502, body: nil, expected: .transient), Upgrade(status: 503, body: nil, expected: .transient),
    Upgrade(status: 504, body: nil, expected: .transient), Upgrade(status: 522, body: nil, expected: .transient),
    // Not in the contract: a portal's page, a redirect, a proxy's own ideas.
    Upgrade(status: 200, body: "<html>", expected: .transient), Upgrade(status: 302, body: nil, expected: .transient),
    Upgrade(status: 402, body: nil, expected: .transient), Upgrade(status: 418, body: nil, expected: .transient),
    Upgrade(status: 501, body: nil, expected: .transient), Upgrade(status: 599, body: nil, expected: .transient),
  ]

  @Test(arguments: upgrades)
  func d29_eachRefusedUpgradeHasItsClass(upgrade: Upgrade) {
    var driver = MachineDriver(
      {
        var policy = ConnectionPolicy()
        policy.usesCredentials = true
        return policy
      }())
    driver.subscribe("a")
    driver.feed(.start)
    driver.feed(.credentials(.token("t")))
    driver.forget()
    driver.feed(.refused(status: upgrade.status, retryAfterSeconds: nil, body: upgrade.body))
    #expect(driver.status.lastFailure?.failureClass == upgrade.expected)
    #expect(driver.status.lastFailure?.status == upgrade.status)
    #expect(driver.status.counters.connectionFailures == [upgrade.expected: 1])
    let isUnknown = [200, 302, 402, 418, 501, 599].contains(upgrade.status)
    #expect(driver.status.counters.refusalsUnknown == (isUnknown ? 1 : 0))
    let first = driver.reconnectIn
    switch upgrade.expected {
    case .transient: #expect(first == 1)
    case .limit: #expect(first == 60)
    case .config: #expect(first == 450)
    case .auth:
      #expect(driver.asks == [true])
      // The session owner knows no better; an hour later nothing has been sent.
      driver.feed(.credentials(.token("t")))
      driver.forget()
      driver.advance(3_600)
      #expect(driver.connects == 0 && driver.asks.isEmpty)
      #expect(driver.status.state == .awaitingCredentials)
    case .denied: Issue.record("no upgrade is denied")
    }
    #expect(driver.rules.violations == [])
  }

  @Test func d29_nothingIsSentWhileTheSessionOwnerIsSilent() {
    var driver = MachineDriver.open(credentials: "t")
    driver.feed(.failed("x", isConfiguration: false))
    driver.advance(1)
    driver.forget()
    driver.feed(.refused(status: 401, retryAfterSeconds: nil, body: nil))
    #expect(driver.asks == [true])
    #expect(driver.status.state == .awaitingCredentials)
    driver.advance(3_600)
    #expect(driver.connects == 0)
    // New ones resume at once.
    driver.feed(.credentials(.token("u")))
    #expect(driver.connects == 1)
    #expect(driver.rules.violations == [])
  }

  /// Nobody can be asked for another key, so it is a matter of configuration: probed slowly, never given up.
  @Test func d29_aRefusedKeyWithoutASessionIsProbedSlowly() {
    var driver = MachineDriver.open()
    driver.feed(.failed("x", isConfiguration: false))
    driver.advance(1)
    driver.feed(.refused(status: 401, retryAfterSeconds: nil, body: nil))
    #expect(driver.status.lastFailure?.failureClass == .auth)
    #expect(driver.reconnectIn == 450)
    driver.advance(450)
    driver.feed(.opened)
    driver.refuse("a", "JwtSignatureError: Failed to validate JWT signature")
    #expect(driver.state("a") == .denied(reason: "JwtSignatureError: Failed to validate JWT signature"))
    driver.forget()
    driver.advanceAnswering(451)
    #expect(driver.joins("a").count == 1)
    #expect(driver.asks.isEmpty)
    #expect(driver.rules.violations == [])
  }

  @Test func d29_anAmbiguousRefusalAsksOnceAndBacksOff() {
    var driver = MachineDriver.open(credentials: "t")
    driver.feed(.failed("x", isConfiguration: false))
    driver.forget()
    for _ in 0..<5 {
      driver.advance(driver.reconnectIn ?? 0)
      driver.feed(.refused(status: 403, retryAfterSeconds: nil, body: nil))
      driver.feed(.credentials(.token("u")))
    }
    #expect(driver.asks == [true])
    #expect(driver.connects == 5)
  }

  @Test func d29_serverErrorsInARowTryFreshCredentials() {
    var driver = MachineDriver.open(credentials: "t")
    driver.feed(.failed("x", isConfiguration: false))
    driver.forget()
    for round in 1...3 {
      driver.advance(driver.reconnectIn ?? 0)
      driver.feed(.refused(status: 500, retryAfterSeconds: nil, body: nil))
      #expect(driver.asks == (round < 3 ? [] : [true]))
    }
  }

  @Test func d29_retryAfterIsHonouredAndBounded() {
    var driver = MachineDriver.open()
    driver.feed(.closed(code: 1012, reason: ""))
    driver.advance(1)
    driver.feed(.refused(status: 503, retryAfterSeconds: 120, body: nil))
    #expect((driver.reconnectIn ?? 0) >= 120 && (driver.reconnectIn ?? 999) <= 121)
    // A hint does not overrule the server.
    driver.feed(.hint(.manual))
    #expect((driver.reconnectIn ?? 0) >= 120)
    driver.advance(122)
    driver.feed(.refused(status: 503, retryAfterSeconds: .max, body: nil))
    #expect((driver.reconnectIn ?? 0) <= 601)
  }

  /// However many hints come while credentials are refused, attempts and questions stay a moment apart.
  @Test func d29_aFloodOfHintsIsNoFloodOfAttempts() {
    var driver = MachineDriver.open(credentials: "t0")
    driver.feed(.failed("x", isConfiguration: false))
    driver.advance(60)
    driver.forget()
    var answered = driver.asks.count
    for _ in 0..<200 {
      driver.feed(.hint(.manual))
      if driver.asks.count > answered {
        answered = driver.asks.count
        driver.feed(.credentials(.token("t\(answered)")))
      }
      if driver.status.state == .connecting { driver.feed(.refused(status: 401, retryAfterSeconds: nil, body: nil)) }
      driver.advance(0.05)
    }
    // Ten seconds.
    #expect(driver.connects > 2 && driver.connects <= 22)
    #expect(driver.asks.count <= 22)
    #expect(driver.rules.violations == [])
  }

  /// Whoever mended a policy need not wait for the slow probe.
  @Test func d29_aPersonsHintTriesDeniedTopicsAgain() {
    var driver = MachineDriver.open()
    driver.refuse("a", "Unauthorized: You do not have permissions to read from this Channel topic: a")
    driver.advance(20)
    driver.forget()
    driver.feed(.hint(.resume))
    driver.answerHeartbeat()
    driver.advance(5)
    #expect(driver.joins("a").isEmpty)
    for _ in 0..<20 {
      driver.feed(.hint(.manual))
      driver.answerHeartbeat()
      driver.advance(0.04)
    }
    driver.advance(0.3)
    #expect(driver.joins("a").count == 1)
    #expect(driver.rules.violations == [])
  }

  @Test func d30_joinsWaitForTheUsersToken() {
    var driver = MachineDriver(
      {
        var policy = ConnectionPolicy()
        policy.usesCredentials = true
        return policy
      }())
    driver.subscribe("a")
    driver.feed(.start)
    #expect(driver.asks == [false])
    driver.advance(0.05)
    driver.feed(.opened)
    driver.advance(2.95)
    #expect(driver.joins().isEmpty)
    #expect(!driver.status.isReady)
    driver.feed(.credentials(.token("user")))
    #expect(driver.joins().map { $0.json?["access_token"] } == ["user"])
    driver.advance(1)
    #expect(driver.joins().count == 1)
    #expect(driver.asks == [false])
  }

  @Test func withoutCredentialsTheConnectKeyCounts() {
    let driver = MachineDriver.open()
    #expect(driver.joins()[0].json?["access_token"] == nil)
  }
}
