import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §18, kind E: tokens.
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
