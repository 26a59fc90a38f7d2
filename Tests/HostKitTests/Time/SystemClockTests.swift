import Glibc
import HostKit
import Testing

@Suite struct SystemClockTests {
  @Test func timersFireInOrderAndNeverEarly() async {
    let clock = SystemClock.shared
    let start = clock.now
    let fired = Locked<[(Int, UInt64)]>([])
    await withCheckedContinuation { continuation in
      for (index, delay) in [30.0, 10, 20].enumerated() {
        // From one common start: this thread may be held up between two of them.
        clock.schedule(at: start + .milliseconds(50 + delay)) {
          let count = fired.withLock { list -> Int in
            list.append((index, SystemClock.shared.now))
            return list.count
          }
          if count == 3 { continuation.resume() }
        }
      }
    }
    let list = fired.withLock { $0 }
    #expect(list.map(\.0) == [1, 2, 0])
    for (index, delay) in [(1, 10.0), (2, 20), (0, 30)] {
      let time = list.first { $0.0 == index }?.1 ?? 0
      #expect(time >= start + .milliseconds(50 + delay))
    }
  }

  @Test func aTimerArmedLaterForAnEarlierTimeFiresFirst() async {
    let clock = SystemClock.shared
    let late = clock.schedule(after: .seconds(3600)) { Issue.record("fired an hour early") }
    await withCheckedContinuation { continuation in
      clock.schedule(after: .milliseconds(5)) { continuation.resume() }
    }
    late.cancel()
  }

  /// Both are due at the same moment; what the first one cancels must not start any more.
  @Test func aTimerCancelledByAnotherOneDoesNotFire() async {
    let clock = SystemClock.shared
    let deadline = clock.now + .milliseconds(5)
    let second = Locked<(any HostTimer)?>(nil)
    await withCheckedContinuation { continuation in
      clock.schedule(at: deadline) {
        // Due together, so that both are taken up in one go. This may run before the second one is armed.
        while second.withLock({ $0 == nil }) { sched_yield() }
        second.withLock { $0 }?.cancel()
      }
      second.withLock { $0 = clock.schedule(at: deadline) { Issue.record("fired after it was cancelled") } }
      clock.schedule(at: deadline + .milliseconds(5)) { continuation.resume() }
    }
  }

  @Test func sleepEndsWhenTheTaskIsCancelled() async {
    let task = Task { try await SystemClock.shared.sleep(nanoseconds: .seconds(3600)) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func sleepLastsAsLongAsAsked() async throws {
    let before = SystemClock.shared.now
    try await SystemClock.shared.sleep(nanoseconds: .milliseconds(5))
    #expect(SystemClock.shared.now >= before + .milliseconds(5))
  }

  @Test func theCalendarIsSet() {
    #expect(SystemClock.shared.wallMilliseconds > 1_700_000_000_000)
  }
}
