import KizunaDoorbell
import Testing

@Suite struct RingStageTests {
  private let trace = RingTrace(
    frameReceivedAt: 110, wokenAt: 115, requestSentAt: 135, responseReceivedAt: 200, committedAt: 230)

  @Test func stagesAddUpToTheTotal() throws {
    let durations = try #require(trace.durations(serverCommittedAt: 100))
    #expect(durations == [.broadcast: 10, .wake: 5, .request: 20, .answer: 65, .commit: 30])
    #expect(durations.values.reduce(0, +) == 130)
  }

  @Test func mixedUpPointsGiveNothing() {
    #expect(trace.durations(serverCommittedAt: 111) == nil)
    var mixed = trace
    mixed.requestSentAt = 114
    #expect(!mixed.isOrdered)
    #expect(mixed.durations(serverCommittedAt: 100) == nil)
  }
}
