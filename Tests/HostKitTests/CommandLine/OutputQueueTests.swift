import Glibc
import Testing

@testable import HostKit

@Suite struct OutputQueueTests {
  /// Whoever adds goes on, however much that is, and all of it comes in order once somebody reads.
  @Test func resultsWaitForTheirReader() async {
    let pipe = TestPipe()
    let queue = OutputQueue(descriptor: pipe.writer, name: "test-output", limits: .init(bytes: 10, lines: 1))
    let results = (0..<20_000).map { "result \($0)" }
    for result in results { queue.add(result: result + "\n") }
    #expect(queue.holdsResults)
    #expect(pipe.lines { $0 == results.last } == results)
    await queue.idle()
    #expect(!queue.holdsResults)
    #expect(queue.progress == results.count)
    #expect(queue.loss == nil)
  }

  @Test func whatWasDroppedIsToldInItsPlace() {
    let pipe = TestPipe()
    let queue = OutputQueue(descriptor: pipe.writer, name: "test-output", limits: .init(lines: 50))
    let count = 20_000
    for index in 0..<count { queue.add(event: "event \(index)\n") { "dropped \($0)\n" } }
    #expect(!queue.holdsResults)
    let lines = pipe.lines { $0 == "event \(count - 1)" }
    var next = 0
    for line in lines {
      if line.hasPrefix("dropped ") {
        next += Int(line.dropFirst(8)) ?? 0
      } else {
        #expect(line == "event \(next)")
        next += 1
      }
    }
    #expect(next == count)
    // A full pipe, the newest, and little else.
    #expect(lines.count < count)
    #expect(lines.suffix(50) == (count - 50..<count).map { "event \($0)" })
  }

  @Test func aReaderThatWentAwayIsToldAndIsNoLoss() async {
    var ends: [Int32] = [-1, -1]
    pipe(&ends)
    close(ends[0])
    let queue = OutputQueue(descriptor: ends[1], name: "test-output")
    let losses = Locked(0)
    queue.onLoss { losses.withLock { $0 += 1 } }
    queue.add(result: "one\n")
    queue.add(event: "two\n") { "\($0)\n" }
    await queue.idle()
    #expect(losses.withLock { $0 } == 2)
    #expect(queue.loss == nil)
    close(ends[1])
  }

  @Test func aFullDeviceIsALoss() async {
    let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
    let queue = OutputQueue(descriptor: full, name: "test-output")
    queue.add(result: "one\n")
    await queue.idle()
    #expect(queue.loss == ENOSPC)
    close(full)
  }

  @Test func patience() {
    let cases: [(progress: Int, holdsResults: Bool, isStopping: Bool, goesOn: Bool)] = [
      (5, false, false, false), (6, false, false, true), (5, true, false, true), (6, true, false, true),
      (6, true, true, false), (5, true, true, false), (6, false, true, false),
    ]
    for one in cases {
      var patience = OutputPatience(progress: 5)
      let goesOn = patience.goesOn(
        progress: one.progress, holdsResults: one.holdsResults, isStopping: one.isStopping)
      #expect(goesOn == one.goesOn, "\(one)")
    }
    var patience = OutputPatience(progress: 0)
    let twice = (0..<2).map { _ in patience.goesOn(progress: 7, holdsResults: false, isStopping: false) }
    #expect(twice == [true, false])
  }
}
