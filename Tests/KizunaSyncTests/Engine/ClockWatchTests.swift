import HostKit
import Testing

@testable import KizunaSync

@Suite struct ClockWatchTests {
  @Test func itSaysSoOnceAnHourAndWhenItIsOver() {
    var watch = ClockWatch()
    let steps: [(local: Int64, server: Int64, at: Double, change: ClockWatch.Change?)] = [
      (100_000, 100_000, 0, nil), (105_000, 100_000, 1, nil), (95_000, 100_000, 2, nil),
      (105_001, 100_000, 3, .off(seconds: 5)), (200_000, 100_000, 4, nil), (94_000, 100_000, 3_602, nil),
      (94_000, 100_000, 3_603, .off(seconds: -6)), (100_000, 100_000, 3_604, .rightAgain),
      (100_000, 100_000, 3_605, nil), (0, 100_000, 3_606, .off(seconds: -100)),
    ]
    for step in steps {
      let change = watch.compare(local: step.local, server: step.server, now: .seconds(step.at))
      #expect(change == step.change, "at \(step.at)")
    }
  }
}
