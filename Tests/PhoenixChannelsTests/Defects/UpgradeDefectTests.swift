import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §18, kind L: refusals and limits.
@Suite struct UpgradeDefectTests {
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
}
