import HostKit
import Testing

@testable import KizunaDoorbell

@Suite struct RunPacingTests {
  /// One run after the other from `now` on, each of two milliseconds, with a ring in each of them.
  /// - Returns: when they began, in milliseconds.
  private func flood(_ pacer: inout RunPacer, runs: Int, from now: UInt64 = 0) -> [Double] {
    var now = now
    return (0..<runs).map { _ in
      now = pacer.begin(at: now)
      defer { now += .milliseconds(2) }
      pacer.rang()
      pacer.end()
      return now.inSeconds * 1_000
    }
  }

  @Test func aStreakGoesAtOnceAndThenEverySpacing() {
    var pacer = RunPacer(RunPacing())
    let begun = flood(&pacer, runs: 20)
    // The first is woken by a ring that came while nothing ran; ten more follow without a pause.
    #expect(begun.prefix(10).map { $0.rounded() } == (0..<10).map { Double($0 * 2) })
    #expect(zip(begun.dropFirst(9), begun.dropFirst(10)).allSatisfy { ($1 - $0).rounded() == 20 })
  }

  @Test func aFloodOfEightSecondsIsBoundedToFiftyPullsASecond() {
    var pacer = RunPacer(RunPacing())
    let begun = flood(&pacer, runs: 1_000).prefix { $0 <= 8_000 }
    #expect(begun.count <= 8 * 50 + 11)
  }

  /// Rings that come one by one are answered at once, however many, and end a streak.
  @Test func ringsBetweenRunsNeverWait() {
    var pacer = RunPacer(RunPacing())
    _ = flood(&pacer, runs: 30)
    // The last of them was rung for.
    _ = pacer.begin(at: .seconds(2))
    pacer.end()
    for number in 0..<100 as Range<UInt64> {
      let now = UInt64.seconds(3) + number * .milliseconds(3)
      pacer.rang()
      #expect(pacer.begin(at: now) == now)
      pacer.end()
    }
    // The streak begins anew.
    let begun = flood(&pacer, runs: 10, from: .seconds(5))
    #expect(begun.map { $0.rounded() } == (0..<10).map { 5_000 + Double($0 * 2) })
  }

  /// A pause that is longer than the spacing costs nothing.
  @Test func slowRunsAreNotSlowedDown() {
    var pacer = RunPacer(RunPacing())
    for number in 0..<50 as Range<UInt64> {
      let now = number * .milliseconds(30)
      #expect(pacer.begin(at: now) == now)
      pacer.rang()
      pacer.end()
    }
  }

  @Test func noSpacingNeverWaits() {
    var pacing = RunPacing()
    pacing.spacing = 0
    var pacer = RunPacer(pacing)
    let begun = flood(&pacer, runs: 100)
    #expect(begun.last?.rounded() == 198)
  }
}
