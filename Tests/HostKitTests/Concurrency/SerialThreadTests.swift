import HostKit
import Testing

private actor Counter {
  let thread: SerialThread
  private(set) var value = 0

  init(thread: SerialThread) { self.thread = thread }
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  func add() { value += 1 }
  func isOnItsThread() -> Bool { thread.isIsolatingCurrentContext() == true }
  func assertIsolated() {
    thread.checkIsolated()
    preconditionIsolated()
  }
}

@Suite struct SerialThreadTests {
  @Test func runsAnActorOnOneThread() async {
    let counter = Counter(thread: SerialThread(name: "test-serial"))
    #expect(await counter.isOnItsThread())
    #expect(counter.thread.isIsolatingCurrentContext() == false)
    await counter.assertIsolated()
    counter.thread.stop()
  }

  @Test func losesNothingUnderLoad() async {
    let thread = SerialThread(name: "test-serial")
    let counter = Counter(thread: thread)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 { group.addTask { for _ in 0..<500 { await counter.add() } } }
    }
    #expect(await counter.value == 4000)
    thread.stop()
  }

  @Test func closuresRunInOrder() async {
    let thread = SerialThread(name: "test-serial")
    let seen = Locked<[Int]>([])
    await withCheckedContinuation { continuation in
      for index in 0..<100 { thread.run { seen.withLock { $0.append(index) } } }
      thread.run { continuation.resume() }
    }
    #expect(seen.withLock { $0 } == Array(0..<100))
    thread.stop()
  }

  @Test func workAfterStopStartsANewThread() async {
    let thread = SerialThread(name: "test-serial")
    for _ in 0..<50 {
      await withCheckedContinuation { continuation in thread.run { continuation.resume() } }
      thread.stop()
    }
  }
}
