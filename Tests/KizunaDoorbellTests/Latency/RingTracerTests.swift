import Testing

@testable import KizunaDoorbell

@Suite struct RingTracerTests {
  private func run(
    woken: UInt64, started: UInt64, succeeded: Bool = true, pull: (UInt64, UInt64)? = (30, 40), committed: UInt64 = 50
  ) -> RingTracer.Run {
    .init(
      wokenAt: woken, startedAt: started, succeeded: succeeded, pull: pull.map { ($0.0, $0.1) }, committedAt: committed)
  }

  @Test func followsOneRing() {
    var tracer = RingTracer()
    tracer.rang(receivedAt: 10)
    #expect(
      tracer.finished(run(woken: 12, started: 13))
        == RingTrace(
          frameReceivedAt: 10, wokenAt: 12, requestSentAt: 30, responseReceivedAt: 40, committedAt: 50))
    #expect(tracer.finished(run(woken: 12, started: 13)) == nil)
  }

  @Test func aBurstCountsFromItsFirstRing() {
    var tracer = RingTracer()
    for time in [10, 11, 12] as [UInt64] { tracer.rang(receivedAt: time) }
    #expect(tracer.finished(run(woken: 11, started: 15))?.frameReceivedAt == 10)
    #expect(tracer.finished(run(woken: 11, started: 15)) == nil)
  }

  @Test func aRingDuringARunBelongsToTheNext() {
    var tracer = RingTracer()
    tracer.rang(receivedAt: 10)
    tracer.rang(receivedAt: 35)
    #expect(tracer.finished(run(woken: 12, started: 13))?.frameReceivedAt == 10)
    #expect(tracer.finished(run(woken: 36, started: 51, pull: (60, 70), committed: 80))?.frameReceivedAt == 35)
  }

  private static let silent: [(String, RingTracer.Run)] = [
    ("failed", .init(wokenAt: 12, startedAt: 13, succeeded: false, pull: (30, 40), committedAt: 50)),
    ("sent nothing", .init(wokenAt: 12, startedAt: 13, succeeded: true, pull: nil, committedAt: 50)),
    ("brought nothing new", .init(wokenAt: 12, startedAt: 13, succeeded: true, pull: (30, 40), committedAt: 9)),
    (
      "was woken before the frame came",
      .init(wokenAt: 8, startedAt: 13, succeeded: true, pull: (30, 40), committedAt: 50)
    ),
    ("an older pull", .init(wokenAt: 12, startedAt: 13, succeeded: true, pull: (5, 6), committedAt: 50)),
  ]

  @Test(arguments: silent)
  func leavesNoTrace(_: String, of run: RingTracer.Run) {
    var tracer = RingTracer()
    tracer.rang(receivedAt: 10)
    #expect(tracer.finished(run) == nil)
  }

  @Test func ringsWithoutATimeAreNotFollowed() {
    var tracer = RingTracer()
    tracer.rang(receivedAt: 0)
    #expect(tracer.finished(run(woken: 12, started: 13)) == nil)
  }

  @Test func doesNotGrowWhileNothingRuns() {
    var tracer = RingTracer()
    for time in 1...10_000 as ClosedRange<UInt64> { tracer.rang(receivedAt: time) }
    #expect(
      tracer.finished(run(woken: 12, started: 20_000, pull: (30_000, 40_000), committed: 50_000))?.frameReceivedAt == 1)
  }
}
