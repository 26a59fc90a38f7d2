import HostKit
import KizunaSyncTestSupport
import Testing

@Suite struct VirtualClockTests {
  @Test func timersFireInOrderAtTheirOwnTime() async {
    let clock = VirtualClock(now: 0)
    let seen = Locked<[String]>([])
    for (name, delay) in [("c", 30), ("a", 10), ("b", 20), ("late", 41)] {
      clock.schedule(at: UInt64(delay)) { seen.withLock { $0.append("\(name)@\(clock.now)") } }
    }
    await clock.advance(by: 40)
    #expect(seen.withLock { $0 } == ["a@10", "b@20", "c@30"])
    #expect(clock.pendingDeadlines == [41])
    #expect(clock.now == 40)
  }

  @Test func aTimerArmedByATimerFiresInTheSameAdvance() async {
    let clock = VirtualClock(now: 0)
    let count = Locked(0)
    @Sendable func again() {
      count.withLock { $0 += 1 }
      clock.schedule(after: .seconds(1)) { again() }
    }
    again()
    await clock.advance(by: .seconds(3_600))
    #expect(count.withLock { $0 } == 3_601)
  }

  @Test func sleepingTasksHaveRunWhenAdvanceReturns() async throws {
    let clock = VirtualClock()
    let steps = Locked<[UInt64]>([])
    let start = clock.now
    let task = Task {
      for _ in 0..<5 {
        try await clock.sleep(nanoseconds: .seconds(2))
        steps.withLock { $0.append(clock.now - start) }
      }
    }
    await clock.advance(by: .seconds(10))
    #expect(steps.withLock { $0 } == (1...5).map { .seconds(Double($0 * 2)) })
    try await task.value
  }

  private actor Owner {
    let thread: SerialThread
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
    private(set) var value = 0
    init(thread: SerialThread) { self.thread = thread }
    func add() { value += 1 }
    func relay(to other: Owner) async {
      for _ in 0..<10 { await other.add() }
    }
  }

  @Test func actorsOnEnrolledThreadsHaveRunWhenAdvanceReturns() async {
    let clock = VirtualClock()
    let (one, two) = (SerialThread(name: "one"), SerialThread(name: "two"))
    defer {
      one.stop()
      two.stop()
    }
    clock.enroll(one)
    clock.enroll(two)
    let (left, right) = (Owner(thread: one), Owner(thread: two))
    for round in 1...50 {
      clock.schedule(after: .seconds(1)) { Task { await left.relay(to: right) } }
      await clock.advance(by: .seconds(1))
      #expect(await right.value == round * 10)
    }
  }

  @Test func cancelledTimersStaySilent() async {
    let clock = VirtualClock()
    let fired = Locked(false)
    let timer = clock.schedule(after: .seconds(1)) { fired.withLock { $0 = true } }
    timer.cancel()
    timer.cancel()
    await clock.advance(by: .seconds(2))
    #expect(fired.withLock { $0 } == false)
    #expect(clock.pendingDeadlines.isEmpty)
  }

  @Test func suspendingTheHostMovesBothClocksAndFiresLate() async {
    let clock = VirtualClock(now: 0, wallMilliseconds: 5_000)
    let at = Locked<UInt64>(0)
    clock.schedule(after: .seconds(25)) { at.withLock { $0 = clock.now } }
    await clock.suspendHost(for: .seconds(7_200))
    #expect(at.withLock { $0 } == .seconds(7_200))
    #expect(clock.wallMilliseconds == 7_205_000)
    clock.jumpWall(byMilliseconds: -7_200_000)
    #expect(clock.wallMilliseconds == 5_000)
    #expect(clock.now == .seconds(7_200))
  }

  @Test func theCalendarKeepsFractionsOfAMillisecond() async {
    let clock = VirtualClock(now: 0, wallMilliseconds: 0)
    for _ in 0..<10 { await clock.advance(by: 300_000) }
    #expect(clock.wallMilliseconds == 3)
  }

  @Test func advanceUntilStopsAtTheFirstTimerThatMakesItTrue() async {
    let clock = VirtualClock(now: 0)
    let done = Locked(false)
    clock.schedule(at: .seconds(3)) { done.withLock { $0 = true } }
    clock.schedule(at: .seconds(9)) {}
    #expect(await clock.advance(atMost: .seconds(60)) { done.withLock { $0 } })
    #expect(clock.now == .seconds(3))
    #expect(await clock.advance(atMost: .seconds(60)) { false } == false)
    #expect(clock.now == .seconds(63))
  }

  @Test func settleUntilGivesUp() async {
    let clock = VirtualClock()
    #expect(await clock.settle(patience: 0.05) { false } == false)
  }
}
