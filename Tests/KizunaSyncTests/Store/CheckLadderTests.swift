import HostKit
import Testing

@testable import KizunaSync

@Suite struct CheckLadderTests {
  /// Looks whenever one is due and returns the milliseconds at which that was.
  private func run(_ ladder: inout CheckLadder, until end: UInt64 = .max) -> [Double] {
    var times: [Double] = []
    while let due = ladder.due, due <= end {
      let looks = ladder.look(at: due)
      #expect(looks)
      times.append(due.inMilliseconds)
    }
    return times
  }

  @Test func nothingIsDueBeforeTheFirstSign() {
    #expect(CheckLadder().due == nil)
  }

  @Test func afterASignItLooksWithGrowingPausesAndThenSleeps() {
    var ladder = CheckLadder()
    ladder.sign(at: .seconds(1))
    #expect(run(&ladder) == [1000, 1001, 1004, 1016, 1064, 1256, 2000])
    #expect(ladder.due == nil)
    let looksLater = ladder.look(at: .seconds(100))
    #expect(!looksLater)
  }

  @Test func anotherSignStartsItAfresh() {
    var ladder = CheckLadder()
    ladder.sign(at: 0)
    #expect(run(&ladder, until: .milliseconds(20)) == [0, 1, 4, 16])
    ladder.sign(at: .milliseconds(30))
    #expect(run(&ladder) == [30, 31, 34, 46, 94, 286, 1030])
  }

  @Test func aLateLookStandsForTheOnesMissed() {
    var ladder = CheckLadder()
    ladder.sign(at: 0)
    let first = ladder.look(at: .milliseconds(70))
    let again = ladder.look(at: .milliseconds(70))
    #expect(first)
    #expect(!again)
    #expect(run(&ladder) == [256, 1000])
  }

  @Test func aStreamOfSignsIsLookedAtOnceAMillisecondAndNeverStarved() {
    var ladder = CheckLadder()
    var looks: [UInt64] = []
    for microsecond in stride(from: UInt64(0), to: 100_000, by: 10) {
      let now = microsecond * 1000
      ladder.sign(at: now)
      if ladder.look(at: now) { looks.append(now) }
    }
    #expect(looks.count == 100)
    #expect(zip(looks, looks.dropFirst()).allSatisfy { $1 - $0 >= .milliseconds(1) })
    // The last sign is not forgotten.
    #expect(run(&ladder).count == CheckLadder.steps.count)
  }
}
