import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §18, kinds A and G: what released clients did wrong about reconnecting.
@Suite struct ReconnectDefectTests {
  @Test func d01_anOutageLongerThanTheFirstDelay() {
    var driver = MachineDriver.joined(topics: ["a", "b"])
    let chance = Locked(SeededRandom(1))
    driver.jitter = { chance.withLock { $0.unit() } }
    driver.forget()
    driver.feed(TransportEvent.failed("reset", isConfiguration: false))
    for attempt in 1...50 {
      // No attempt is further away than the cap.
      #expect((driver.reconnectIn ?? 99) <= 30)
      driver.advance(driver.reconnectIn ?? 0)
      #expect(driver.connects == attempt)
      driver.feed(TransportEvent.failed("unreachable", isConfiguration: false))
    }
    #expect((driver.reconnectIn ?? 99) <= 30)
    driver.advance(30)
    driver.feed(.opened)
    driver.acceptJoins()
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  /// The schedule alone never spends the budget.
  @Test func d01_theCappedScheduleStaysWithinTheBudget() {
    for seed in 1...20 as ClosedRange<UInt64> {
      var driver = MachineDriver.open()
      let chance = Locked(SeededRandom(seed))
      driver.jitter = { chance.withLock { $0.unit() } }
      driver.feed(TransportEvent.failed("reset", isConfiguration: false))
      for _ in 0..<200 {
        guard case .backingOff = driver.status.state else {
          Issue.record("not backing off: \(driver.status.state)")
          return
        }
        driver.advance(driver.reconnectIn ?? 0)
        driver.feed(TransportEvent.failed("unreachable", isConfiguration: false))
      }
    }
  }

  @Test(arguments: [nil, 1000, 1001, 1006, 1011, 1012, 4001] as [UInt16?])
  func d02_everyCloseReconnects(code: UInt16?) {
    var driver = MachineDriver.joined()
    driver.forget()
    driver.feed(.closed(code: code, reason: ""))
    let armed = driver.timers.filter { $0.token.kind == .reconnect }
    #expect(armed.count == 1)
    #expect(driver.closes == 0)
    // A second report of the same end changes nothing.
    #expect(driver.feed(.closed(code: code, reason: "")).isEmpty)
    driver.advance(driver.reconnectIn ?? 0)
    #expect(driver.connects == 1)
    #expect(driver.timers.allSatisfy { $0.token.kind != .reconnect })
    #expect(driver.rules.violations == [])
  }

  @Test func d03_stopInEveryState() {
    let states: [(String, () -> MachineDriver)] = [
      (
        "disconnected",
        {
          var driver = MachineDriver()
          driver.feed(.start)
          return driver
        }
      ),
      (
        "connecting",
        {
          var driver = MachineDriver()
          driver.subscribe("a")
          driver.feed(.start)
          return driver
        }
      ),
      ("open, waiting for a token", { MachineDriver.open { $0.usesCredentials = true } }),
      ("joining", { MachineDriver.open() }), ("joined", { MachineDriver.joined() }),
      (
        "backing off",
        {
          var driver = MachineDriver.joined()
          driver.feed(.closed(code: 1012, reason: ""))
          return driver
        }
      ),
      (
        "awaiting credentials",
        {
          var driver = MachineDriver.joined(credentials: "t")
          driver.feed(.credentials(.withdrawn))
          return driver
        }
      ),
      (
        "suspended",
        {
          var driver = MachineDriver.joined()
          driver.feed(.hint(.pathUnsatisfied))
          driver.feed(.failed("gone", isConfiguration: false))
          return driver
        }
      ),
      (
        "closing after a missed heartbeat",
        {
          var driver = MachineDriver.joined()
          driver.advance(36)
          return driver
        }
      ),
    ]
    let ends: [TransportEvent] = [
      .closed(code: 1000, reason: ""), .failed("cancelled", isConfiguration: false),
      .refused(status: 503, retryAfterSeconds: nil, body: nil), .opened,
    ]
    for (name, make) in states {
      for end in ends {
        var driver = make()
        driver.forget()
        driver.feed(.stop)
        driver.feed(end)
        driver.feed(end)
        driver.advance(2)
        #expect(driver.isStopped, "\(name)")
        #expect(driver.timers.isEmpty, "\(name)")
        driver.advance(7_200)
        #expect(driver.connects == 0, "\(name)")
        #expect(driver.rings.isEmpty, "\(name)")
        #expect(driver.status.state == .stopped, "\(name)")
        #expect(driver.status.nextAttemptAt == nil, "\(name)")
        #expect(driver.rules.violations == [], "\(name)")
      }
    }
  }

  @Test func d03_aRingThatTheStopCaughtIsNotMadeUpFor() {
    var driver = MachineDriver.open(topics: ["a", "b"])
    driver.accept("a")
    driver.feed(.stop)
    driver.feed(.closed(code: 1000, reason: ""))
    driver.feed(.start)
    driver.feed(.opened)
    #expect(driver.rings.isEmpty)
    driver.acceptJoins()
    #expect(driver.rings.map(\.topics.count) == [2])
  }

  @Test func aTimerThatWasCancelledChangesNothing() {
    var driver = MachineDriver.joined()
    for token in driver.cancelled {
      #expect(driver.feed(.timer(token)).isEmpty)
    }
    #expect(!driver.cancelled.isEmpty)
    #expect(driver.status.isReady)
  }

  @Test func d04_startWhileTheOldConnectionCloses() {
    // The old one ends in time.
    var driver = MachineDriver.joined()
    driver.feed(.stop)
    driver.forget()
    driver.feed(.start)
    #expect(driver.connects == 0)
    driver.feed(.closed(code: 1000, reason: ""))
    #expect(driver.connects == 1)
    driver.advance(600)
    #expect(driver.rules.violations == [])

    // It never ends.
    driver = MachineDriver.joined()
    driver.feed(.stop)
    driver.forget()
    driver.feed(.start)
    driver.advance(1.4)
    #expect(driver.connects == 0)
    driver.advance(0.2)
    #expect(driver.connects == 1)
    driver.feed(.opened)
    driver.acceptJoins()
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  @Test func d18_manyStartsAreOne() {
    var driver = MachineDriver.joined()
    for _ in 0..<100 {
      driver.feed(.start)
      driver.subscribe("a")
    }
    #expect(driver.connects == 1)
    #expect(driver.joins().count == 1)
    #expect(driver.status.topics.map(\.subscribers) == [101])
  }

  @Test func d19_repeatedAndLateOpenings() {
    var driver = MachineDriver.open()
    let first = driver.transport
    driver.feed(.opened)
    driver.feed(.opened)
    #expect(driver.timers.count { $0.token.kind == .heartbeat } == 1)
    #expect(driver.joins().count == 1)
    driver.acceptJoins()
    #expect(driver.status.isReady)
    #expect(driver.status.counters.opened == 1)
    // Nor does it forget the heartbeat that is out.
    while driver.sent("heartbeat").isEmpty { driver.advance(1) }
    #expect(driver.feed(.opened).isEmpty)
    driver.answerHeartbeat()

    driver.feed(.failed("reset", isConfiguration: false))
    driver.advance(1)
    // The old transport reports once more while the new one connects.
    if let first { #expect(driver.feed(.transport(first, .opened)).isEmpty) }
    #expect(driver.status.state == .connecting)
    driver.feed(.opened)
    driver.acceptJoins()
    #expect(driver.status.isReady)
    #expect(driver.rules.violations == [])
  }

  /// The attempt goes on in its own time: whatever it comes to, nobody hears of it.
  @Test(
    arguments: [
      [.opened, .closed(code: 1000, reason: "")], [.failed("refused", isConfiguration: false)],
      [.refused(status: 401, retryAfterSeconds: 5, body: nil)], [.opened, .opened, .pong], [],
    ] as [[TransportEvent]])
  func d31_stopDuringTheAttempt(ends: [TransportEvent]) {
    let prepare: [(inout MachineDriver) -> Void] = [
      { _ in }, { $0.advance(14) }, { $0.feed(.opened) },
      {
        $0.feed(.opened)
        $0.feed(.credentials(.token("t")))
      },
    ]
    for prepare in prepare {
      var driver = MachineDriver()
      driver.subscribe("a")
      driver.feed(.start)
      prepare(&driver)
      driver.feed(.stop)
      #expect(driver.closes == 1)
      driver.forget()
      for end in ends { driver.feed(end) }
      driver.accept("a")
      driver.feed(.credentials(.token("u")))
      driver.advance(3_600)
      #expect(driver.isStopped)
      #expect(driver.frames.isEmpty && driver.connects == 0 && driver.rings.isEmpty && driver.asks.isEmpty)
      #expect(driver.timers.isEmpty)
      #expect(driver.rules.violations == [])
    }
  }
}
