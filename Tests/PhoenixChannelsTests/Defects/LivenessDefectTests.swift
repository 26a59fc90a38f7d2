import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §18, kinds D and I: heartbeats, sleep and changes of the network.
@Suite struct LivenessDefectTests {
  @Test(arguments: [0.0, 0.5, 1.0])
  func d08_inboundMessagesDoNotPostponeHeartbeats(chance: Double) {
    var driver = MachineDriver.joined()
    driver.jitter = { chance }
    driver.forget()
    var last = driver.now
    var largest: UInt64 = 0
    for _ in 0..<600 {
      driver.advance(1)
      driver.broadcast("a")
      if !driver.sent("heartbeat").isEmpty {
        driver.answerHeartbeat()
        largest = max(largest, driver.now - last)
        last = driver.now
        driver.forget()
      }
    }
    #expect(largest <= .seconds(30))
    #expect(largest >= .seconds(22))
    #expect(driver.status.state == .open)
  }

  /// The close handshake of a dead peer is not waited for.
  @Test func d09_aDeadPeerIsLeftBehind() {
    var driver = MachineDriver.joined()
    while driver.closes == 0 { driver.advance(0.5) }
    let missedAt = driver.now
    driver.forget()
    // The old transport never reports its end.
    while driver.connects == 0, driver.now < missedAt + .seconds(60) { driver.advance(0.1) }
    #expect(driver.now - missedAt <= driver.rules.policy.closeDeadline + .milliseconds(200))
    #expect(driver.effects.contains { if case .abandon = $0 { true } else { false } })
    driver.feed(.opened)
    driver.acceptJoins()
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  @Test func d10_heartbeatsThatAreNotAnswered() {
    var driver = MachineDriver.joined()
    driver.advanceAnswering(60)
    #expect(driver.status.state == .open)
    driver.forget()
    // The server goes on sending broadcasts and answers an older reference.
    while driver.sent("heartbeat").isEmpty { driver.advance(0.5) }
    let sentAt = driver.now
    driver.receive(PhoenixFrame(ref: "1", topic: "phoenix", event: "phx_reply", ["status": "ok", "response": [:]]))
    driver.receive(PhoenixFrame(topic: "phoenix", event: "phx_reply", ["status": "ok", "response": [:]]))
    while driver.closes == 0, driver.now < sentAt + .seconds(60) {
      driver.advance(0.5)
      driver.broadcast("a")
    }
    let waited = (driver.now - sentAt).inSeconds
    #expect(waited >= 9.5 && waited <= 10.5)
    #expect(driver.status.counters.heartbeatsMissed == 1)
    #expect(driver.reconnectIn != nil)
    // A late answer changes nothing any more.
    let ref = driver.sent("heartbeat").last?.ref
    #expect(
      driver.receive(PhoenixFrame(ref: ref, topic: "phoenix", event: "phx_reply", ["status": "ok", "response": [:]]))
        .isEmpty)
    #expect(driver.rules.violations == [])
  }

  @Test func d10_heartbeatsCarryAReferenceOfTheirOwn() {
    var driver = MachineDriver.joined()
    driver.advanceAnswering(300)
    let refs = driver.sent("heartbeat").map(\.ref)
    #expect(refs.count >= 10)
    #expect(!refs.contains(nil))
    #expect(Set(refs).count == refs.count)
  }

  /// A slow join is not a dead peer: the server answers nothing while it works on one.
  @Test func d10_aSlowJoinIsTolerated() {
    var driver = MachineDriver.joined(topics: ["a"])
    driver.advanceAnswering(20)
    driver.subscribe("b")
    driver.forget()
    driver.advance(24)
    #expect(!driver.sent("heartbeat").isEmpty)
    #expect(driver.status.state == .open)
    driver.accept("b")
    driver.advance(4)
    driver.answerHeartbeat()
    driver.advanceAnswering(20)
    #expect(driver.status.isReady)
    #expect(driver.closes == 0)
  }

  /// But it is bounded: join deadline and heartbeat deadline from the last byte.
  @Test func d10_aSilentPeerDuringAJoinIsFoundOut() {
    var driver = MachineDriver.open()
    let start = driver.now
    while driver.closes == 0, driver.now < start + .seconds(120) { driver.advance(0.5) }
    #expect((driver.now - start).inSeconds <= 40)
    #expect(driver.rules.violations == [])
  }

  @Test(arguments: [ConnectionHint.resume, .pathSatisfied, .foreground, .manual])
  func d11_aHintProbesAtOnce(hint: ConnectionHint) {
    var driver = MachineDriver.joined()
    driver.advanceAnswering(30)
    driver.forget()
    driver.feed(.hint(hint))
    #expect(driver.sent("heartbeat").count == 1)
    driver.feed(.hint(hint))
    #expect(driver.sent("heartbeat").count == 1)
    driver.advance(4.9)
    #expect(driver.closes == 0)
    driver.advance(0.2)
    #expect(driver.closes == 1)
    #expect(driver.reconnectIn != nil)
  }

  /// A server that answers at once must not be asked as fast as hints come.
  @Test func d11_aFloodOfHintsProbesOnceASecond() {
    var driver = MachineDriver.joined()
    driver.advanceAnswering(30)
    driver.forget()
    for _ in 0..<500 {
      driver.feed(.hint(.manual))
      driver.answerHeartbeat()
      driver.advance(0.01)
    }
    #expect((5...6).contains(driver.sent("heartbeat").count))
    #expect(driver.closes == 0)
    // The last one of the flood is not lost.
    driver.answerHeartbeat()
    driver.forget()
    driver.feed(.hint(.resume))
    driver.advance(1)
    #expect(driver.sent("heartbeat").count == 1)
    #expect(driver.rules.violations == [])
  }

  /// After two hours without timers they fire once each, not once per interval missed.
  @Test func d11_overdueTimersFireOnce() {
    var driver = MachineDriver.joined()
    driver.advanceAnswering(30)
    driver.forget()
    driver.sleep(7_200)
    driver.feed(.hint(.resume))
    driver.advance(0)
    #expect(driver.sent("heartbeat").count <= 2)
    driver.answerHeartbeat()
    driver.advance(20)
    #expect(driver.status.state == .open)
    #expect(driver.closes == 0)
  }

  /// A process that was stopped for a while has the answer unread in its socket; it gets a chance to read it.
  @Test func d11_aDeadlineThatFiresLateGivesGrace() {
    var driver = MachineDriver.joined()
    while driver.sent("heartbeat").isEmpty { driver.advance(1) }
    driver.sleep(3_600)
    driver.advance(0)
    #expect(driver.closes == 0)
    driver.answerHeartbeat()
    driver.advance(10)
    #expect(driver.closes == 0)
  }

  @Test func d11_aHintBringsTheNextAttemptForward() {
    var driver = MachineDriver.joined()
    for _ in 0..<8 {
      driver.feed(.failed("away", isConfiguration: false))
      driver.advance(30)
    }
    driver.feed(.failed("away", isConfiguration: false))
    #expect(driver.reconnectIn == 30)
    driver.feed(.hint(.resume))
    #expect((driver.reconnectIn ?? 99) <= 1)
    #expect(driver.timers.count { $0.token.kind == .reconnect } == 1)
  }

  @Test func d11_hintsCannotSpendMoreThanTheBudget() {
    var driver = MachineDriver.joined()
    driver.feed(.failed("away", isConfiguration: false))
    driver.forget()
    for _ in 0..<1_200 {
      driver.feed(.hint(.pathSatisfied))
      driver.advance(0.5)
      driver.feed(.failed("away", isConfiguration: false))
    }
    // 40 within ten minutes, and then one per thirty seconds.
    #expect(driver.connects <= 60)
    #expect(driver.connects >= 40)
    #expect(driver.rules.violations == [])
  }

  @Test func anUnsatisfiedPathSuspendsAndASatisfiedOneEndsIt() {
    var driver = MachineDriver.joined()
    driver.feed(.hint(.pathUnsatisfied))
    #expect(driver.status.state == .open)
    driver.feed(.failed("gone", isConfiguration: false))
    guard case .suspended = driver.status.state else {
      Issue.record("\(driver.status.state)")
      return
    }
    driver.forget()
    driver.advance(140)
    #expect(driver.connects == 0)
    driver.feed(.hint(.pathSatisfied))
    driver.advance(1)
    #expect(driver.connects == 1)
    // And without a hint time ends it.
    driver.feed(.hint(.pathUnsatisfied))
    driver.feed(.failed("gone", isConfiguration: false))
    driver.forget()
    driver.advance(451)
    #expect(driver.connects == 1)
  }
}
