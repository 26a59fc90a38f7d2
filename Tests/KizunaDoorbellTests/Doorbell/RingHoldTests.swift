import HTTPClient
import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Testing

@testable import KizunaDoorbell

@Suite struct RingHoldTests {
  private static let answers: [(status: Int, retryAfter: Int?, seconds: Double)] = [
    (429, 5, 5), (429, nil, 1), (503, 60, 60), (503, 0, 1), (500, nil, 1), (502, -3, 1), (429, Int.max, 300),
    (429, 100_000, 300), (200, nil, 0), (400, nil, 0), (401, 9, 0), (404, nil, 0),
  ]

  @Test(arguments: answers.indices)
  func theFirstAnswerDecidesThePause(index: Int) {
    let (status, retryAfter, seconds) = Self.answers[index]
    let now = UInt64.seconds(10)
    var hold = RingHold()
    hold.answered(status: status, endsRun: true, retryAfter: retryAfter, at: now)
    if seconds == 0 {
      #expect(hold.rang(at: now) == .ring)
      return
    }
    let end = now + .seconds(seconds)
    #expect(hold.rang(at: now) == .wait(until: end))
    #expect(hold.rang(at: end - 1) == .drop)
    let early = hold.due(at: end - 1)
    #expect(!early)
    let due = hold.due(at: end)
    let again = hold.due(at: end)
    #expect(due && !again)
    #expect(hold.rang(at: end) == .ring)
  }

  @Test func thePauseGrowsToItsCapAndEndsWithAGoodPull() {
    var hold = RingHold()
    var pauses: [Double] = []
    var now: UInt64 = 0
    for _ in 0..<40 {
      hold.answered(status: 500, endsRun: true, retryAfter: nil, at: now)
      pauses.append((hold.until - now).inSeconds)
      now = hold.until
    }
    #expect(pauses.prefix(7) == [1, 2, 4, 8, 16, 30, 30])
    #expect(pauses.last == 30)
    hold.answered(status: 429, endsRun: true, retryAfter: 60, at: now)
    _ = hold.rang(at: now)
    // A push that succeeds says nothing of the pull behind it.
    hold.answered(status: 200, endsRun: false, retryAfter: nil, at: now)
    let early = hold.due(at: now)
    #expect(!early)
    hold.answered(status: 200, endsRun: true, retryAfter: nil, at: now)
    let due = hold.due(at: now)
    #expect(due)
    hold.answered(status: 500, endsRun: true, retryAfter: nil, at: now)
    #expect(hold.until == now + .seconds(1))
  }

  /// Somebody asks again and again, whatever is held: rings do not wait the longer for it.
  @Test func refusalsOfWhatWasAskedForMeanwhileAreNoFurtherOnes() {
    var hold = RingHold()
    for tenth in 0..<50 {
      let now = UInt64.milliseconds(Double(tenth * 20))
      hold.answered(status: 503, endsRun: true, retryAfter: nil, at: now)
      #expect(hold.until == now + .seconds(1))
    }
    let end = hold.until
    hold.answered(status: 503, endsRun: true, retryAfter: nil, at: end)
    #expect(hold.until == end + .seconds(2))
  }

  /// Ten rings a second, and a pull for each that gets through.
  @Test(arguments: [(429, "5", 4), (503, "60", 2), (500, nil, 6)] as [(Int, String?, Int)])
  func ringsDoNotBecomePullsThatAreRefusedAgain(status: Int, retryAfter: String?, most: Int) async {
    let clock = VirtualClock()
    let bell = ManualDoorbell()
    let paced = PacedDoorbell(bell, clock: clock)
    let pulls = Locked(0)
    let answer = Locked(HTTPResponse(status: status, headers: retryAfter.map { [HTTPHeader("Retry-After", $0)] } ?? []))
    let subscription = paced.subscribe(topics: ["kizunasync:todos"]) { [weak paced] in
      pulls.withLock { $0 += 1 }
      paced?.answered("kizunasync_pull", answer.withLock { $0 })
    }
    for _ in 0..<155 {
      bell.ring()
      await clock.advance(by: .milliseconds(100))
    }
    #expect((1...most).contains(pulls.withLock { $0 }))
    // The last ring is not lost.
    let before = pulls.withLock { $0 }
    answer.withLock { $0 = HTTPResponse(status: 200) }
    await clock.advance(by: .seconds(60))
    #expect(pulls.withLock { $0 } == before + 1)
    bell.ring()
    bell.ring()
    #expect(pulls.withLock { $0 } == before + 3)
    subscription.cancel()
    bell.ring()
    #expect(pulls.withLock { $0 } == before + 3)
    #expect(clock.pendingDeadlines.isEmpty)
  }
}
