import HostKit
import PhoenixChannels
import Testing

/// Joins are a queue in the server, so they are sent with care.
@Suite struct JoinPacingTests {
  private static let many = (0..<10).map { "t\($0)" }

  @Test func oneJoinFirstAndMoreAfterItsReply() {
    var driver = MachineDriver.open(topics: Self.many)
    #expect(driver.joins().count == 1)
    driver.accept("t0")
    #expect(driver.joins().count == 5)
    driver.accept("t1")
    #expect(driver.joins().count == 6)
    driver.acceptJoins()
    #expect(driver.joins().count == 10)
    #expect(driver.status.isReady)
    #expect(driver.rings.map(\.topics.count) == [10])
  }

  @Test func aRefusalHoldsTheOthersToOneAtATime() {
    var driver = MachineDriver.open(topics: Self.many)
    driver.refuse("t0", "UnableToConnectToProject: x")
    #expect(driver.joins().map(\.topic) == ["realtime:t0", "realtime:t1"])
    driver.refuse("t1", "Unauthorized: x")
    #expect(driver.joins().count == 3)
  }

  @Test func aRefusalAfterAnAcceptanceHoldsTheOthersAgain() {
    var driver = MachineDriver.open(topics: Self.many)
    driver.accept("t0")
    #expect(driver.joins().count == 5)
    driver.refuse("t1", "Unauthorized: x")
    // The three that are out already come back one by one; nothing is added meanwhile.
    #expect(driver.joins().count == 5)
    for topic in ["t2", "t3", "t4"] { driver.refuse(topic, "Unauthorized: x") }
    #expect(driver.joins().count == 6)
  }

  /// Topics that fail again and again, each after the server's pause or after ours, do not keep the others out.
  /// More than two unanswered ones cost the connection.
  @Test(arguments: [(1, true), (3, true), (5, true), (9, true), (11, true), (1, false), (2, false)])
  func failingTopicsKeepNoOtherOut(failing: Int, isAnswered: Bool) {
    let topics = (0..<12).map { "t\($0)" }
    var driver = MachineDriver.open(topics: topics)
    for _ in 0..<60 {
      guard let (index, topic) = topics.enumerated().first(where: { driver.state($1) == .joining }) else {
        driver.advanceAnswering(1)
        continue
      }
      driver.advanceAnswering(index < failing && !isAnswered ? 26 : 5)
      if index >= failing {
        driver.accept(topic)
      } else if isAnswered {
        driver.refuse(topic, "QueryCanceled")
      }
    }
    for topic in topics.dropFirst(failing) { #expect(driver.state(topic) == .joined, "\(topic)") }
  }

  /// Neither joins what is about to be left, nor calls the rest ready.
  @Test func leavingAllTopicsAtOnceJoinsNone() {
    var driver = MachineDriver.open(topics: Self.many)
    driver.accept("t0")
    driver.refuse("t1", "Unauthorized: x")
    driver.forget()
    driver.feed(.unsubscribe(Self.many.map(MachineDriver.topic)))
    #expect(driver.joins().isEmpty)
    #expect(!driver.status.isReady)
  }

  @Test func aLimitOfTheConnectionHoldsAll() {
    var driver = MachineDriver.open(topics: Self.many)
    driver.refuse("t0", "ClientJoinRateLimitReached: Too many joins per second")
    driver.forget()
    driver.advanceAnswering(29)
    #expect(driver.joins().isEmpty)
    driver.feed(.closed(code: 1001, reason: ""))
    #expect((driver.reconnectIn ?? 0) >= 30)
    #expect(driver.status.lastFailure?.text.hasPrefix("ClientJoinRateLimitReached") == true)
  }

  @Test func aRefusedTokenHoldsAllUntilAnotherIsThere() {
    var driver = MachineDriver.open(topics: Self.many, credentials: "old")
    driver.refuse("t0", "InvalidJWTToken: Token has expired 1 seconds ago")
    driver.forget()
    driver.advance(5)
    #expect(driver.joins().isEmpty)
    driver.feed(.credentials(.token("new")))
    driver.acceptJoins()
    #expect(driver.status.isReady)
    #expect(driver.joins().count == 10)
  }

  @Test func anUnansweredJoinIsLeftAndTriedAgain() throws {
    var driver = MachineDriver.joined(topics: ["a"])
    driver.subscribe("b")
    let first = try #require(driver.joinRef("b"))
    driver.forget()
    driver.advanceAnswering(25)
    #expect(driver.sent("phx_leave").map(\.joinRef) == [first])
    #expect(driver.status.counters.joinsUnanswered == 1)
    // A late acceptance of the join that was given up is not one.
    driver.reply("b", ref: first)
    #expect(driver.state("b") != .joined)
    driver.advanceAnswering(1)
    #expect(driver.joins("b").count == 1)
    driver.accept("b")
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  @Test func aRestartingNodeIsLeft() {
    var driver = MachineDriver.joined(topics: ["a"])
    driver.subscribe("b")
    driver.refuse("b", "RealtimeRestarting: Realtime is restarting, please standby")
    #expect(driver.closes == 1)
    driver.feed(.closed(code: 1000, reason: ""))
    driver.advance(1)
    #expect(driver.status.state == .connecting)
  }

  @Test func aVanishedTenantIsProbedSlowly() {
    var driver = MachineDriver.open()
    driver.refuse("a", "TenantNotFound: Tenant with the given ID does not exist")
    driver.feed(.closed(code: 1001, reason: ""))
    guard case .suspended = driver.status.state else {
      Issue.record("\(driver.status.state)")
      return
    }
    #expect((driver.reconnectIn ?? 0) >= 150)
  }
}
