import HostKit
import PhoenixChannels
import Testing

/// What a connection that has to be believed is tried with, one test each. Versions that arrive out of order are a
/// matter of the rows; see `LostRingScenarios`.
@Suite struct RecoveryListTests {
  /// Every message may come twice, and so may every report of the transport.
  @Test func duplicateEvents() {
    var driver = MachineDriver.open(topics: ["a", "b"])
    driver.feed(.opened)
    for topic in ["a", "b"] {
      driver.accept(topic)
      driver.accept(topic)
    }
    #expect(driver.joins().count == 2)
    #expect(driver.rings.map(\.topics.count) == [2])
    // A broadcast that is delivered twice costs one empty pull.
    driver.forget()
    for _ in 0..<2 {
      driver.receive(
        "broadcast", "a", ["type": "broadcast", "event": "changed", "payload": [:], "meta": ["id": "a1"]])
    }
    #expect(driver.rings.count == 2)
    // A channel that is closed twice is joined once.
    let ref = driver.joinRef("a")
    for _ in 0..<2 { driver.receive("phx_close", "a", joinRef: ref, ref: ref) }
    driver.advance(2)
    driver.accept("a")
    driver.receive("phx_close", "a", joinRef: ref, ref: ref)
    driver.advanceAnswering(60)
    #expect(driver.joins("a").count == 1)
    // A connection that ends twice is replaced once.
    driver.forget()
    driver.feed(.failed("reset", isConfiguration: false))
    driver.feed(.closed(code: 1006, reason: ""))
    driver.advance(driver.reconnectIn ?? 0)
    #expect(driver.connects == 1)
    #expect(driver.reconnectIn == nil)
    #expect(driver.rules.violations == [])
  }

  @Test func expiredCredentials() {
    var driver = MachineDriver.joined(topics: ["a", "b"], credentials: "old")
    driver.forget()
    // The server ends both channels at the same second.
    for topic in ["a", "b"] {
      let ref = driver.joinRef(topic)
      driver.receive(
        "system", topic, joinRef: ref,
        ["extension": "system", "status": "error", "message": "Token has expired 0 seconds ago"])
      driver.receive("phx_close", topic, joinRef: ref, ref: ref)
    }
    #expect(driver.asks == [true])
    driver.advanceAnswering(600)
    #expect(driver.joins().isEmpty)
    driver.feed(.credentials(.token("new")))
    driver.acceptJoins()
    #expect(driver.joins().map { $0.json?["access_token"] } == ["new", "new"])
    #expect(driver.rings.map(\.topics.count) == [2])
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  @Test func delayedPong() {
    var driver = MachineDriver.joined()
    while driver.heartbeatRefs.isEmpty { driver.advance(0.5) }
    // Just in time.
    driver.advance(9.4)
    driver.answerHeartbeat()
    driver.advance(5)
    #expect(driver.status.isReady)
    #expect(driver.status.counters.heartbeatsMissed == 0)
    // Just too late: it is counted and changes nothing.
    let earlier = driver.heartbeatRefs
    while driver.heartbeatRefs == earlier { driver.advance(0.5) }
    driver.advance(10.5)
    #expect(driver.status.counters.heartbeatsMissed == 1)
    let due = driver.reconnectIn
    let unmatched = driver.status.counters.framesUnmatched
    driver.answerHeartbeat()
    driver.feed(.pong)
    #expect(driver.reconnectIn == due)
    #expect(driver.status.counters.framesUnmatched == unmatched)
    driver.feed(.closed(code: 1000, reason: ""))
    driver.advance(2)
    #expect(driver.connects == 2)
    #expect(driver.rules.violations == [])
  }

  @Test func cancellationDuringBackoff() {
    for cancel: (inout MachineDriver) -> Void in [{ $0.feed(.stop) }, { $0.unsubscribe("a") }] {
      for failures in 1...8 {
        var driver = MachineDriver.joined()
        driver.feed(.failed("reset", isConfiguration: false))
        for _ in 1..<failures {
          driver.advance(driver.reconnectIn ?? 0)
          driver.feed(.failed("unreachable", isConfiguration: false))
        }
        driver.advance((driver.reconnectIn ?? 0) / 2)
        driver.forget()
        cancel(&driver)
        #expect(driver.timers.isEmpty)
        driver.advance(3_600)
        #expect(driver.connects == 0 && driver.rings.isEmpty)
        // Wanted again, it is served again.
        driver.feed(.start)
        if driver.status.topics.isEmpty { driver.subscribe("a") }
        driver.advance(driver.reconnectIn ?? 0)
        driver.feed(.opened)
        driver.acceptJoins()
        #expect(driver.status.isReady)
        #expect(driver.rules.violations == [])
      }
    }
  }

  @Test func repeatedDisconnects() {
    var driver = MachineDriver.joined(topics: ["a", "b"])
    for round in 1...100 {
      driver.forget()
      driver.feed(.closed(code: round % 2 == 0 ? 1012 : nil, reason: ""))
      driver.advance(driver.reconnectIn ?? 0)
      driver.feed(.opened)
      driver.acceptJoins()
      // Resubscribed exactly once.
      #expect(driver.joins().map(\.topic) == ["realtime:a", "realtime:b"])
      #expect(driver.rings.count == 1)
      #expect(driver.status.isReady)
    }
    #expect(driver.rules.violations == [])
  }
}
