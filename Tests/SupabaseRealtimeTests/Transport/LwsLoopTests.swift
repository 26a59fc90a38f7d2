import HostKit
import Testing

@testable import SupabaseRealtime

@Suite(.timeLimit(.minutes(5)))
struct LwsLoopTests {
  private actor Resident {
    private let loop: LwsLoop
    private var calls = 0

    init(_ loop: LwsLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func call() -> (count: Int, isOnLoop: Bool) {
      calls += 1
      return (calls, loop.isOnLoop)
    }

    nonisolated func callFromTheLoop() -> Int { assumeIsolated { $0.call().count } }
  }

  private func makeLoop() -> LwsLoop {
    LwsLoop(name: "test-loop", options: LwsLoop.ContextOptions(usesTLS: false, maximumSockets: 16))
  }

  private func stop(_ loop: LwsLoop) async {
    await withCheckedContinuation { done in loop.stop { done.resume() } }
  }

  @Test func actorsRunOnTheThreadOfTheLoop() async {
    let loop = makeLoop()
    let resident = Resident(loop)
    #expect(await resident.call() == (1, true))
    let count = await withCheckedContinuation { done in loop.run { done.resume(returning: resident.callFromTheLoop()) }
    }
    #expect(count == 2)
    #expect(!loop.isOnLoop)
    await stop(loop)
  }

  @Test func closuresRunInTheirOrder() async {
    let loop = makeLoop()
    let seen = Locked<[Int]>([])
    for number in 0..<1_000 { loop.run { seen.withLock { $0.append(number) } } }
    await withCheckedContinuation { done in loop.run { done.resume() } }
    #expect(seen.withLock { $0 } == Array(0..<1_000))
    await stop(loop)
  }

  /// Work handed in while the loop sleeps in `poll` or on its semaphore is not left lying.
  @Test(arguments: [false, true])
  func aSleepingLoopIsWoken(hasSockets: Bool) async {
    let loop = makeLoop()
    await withCheckedContinuation { done in
      loop.run {
        if hasSockets {
          #expect(loop.context() != nil)
          loop.socketBegan()
        }
        done.resume()
      }
    }
    for _ in 0..<2_000 {
      await withCheckedContinuation { done in loop.run { done.resume() } }
    }
    await stop(loop)
  }

  @Test func manyThreadsMayHandInWork() async {
    let loop = makeLoop()
    let count = Locked(0)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<500 { loop.run { count.withLock { $0 += 1 } } } }
      }
    }
    await withCheckedContinuation { done in loop.run { done.resume() } }
    #expect(count.withLock { $0 } == 4_000)
    await stop(loop)
  }
}
