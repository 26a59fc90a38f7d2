import Testing

@testable import KizunaSync

@Suite struct HybridClockTests {
  @Test func stampsRiseWhateverTheCalendarDoes() {
    var clock = HybridClock(state: nil) { "node" }
    #expect(clock.mint(at: 1_767_225_603_000, now: 1_767_225_603_000) == "2026-01-01T00:00:03.000Z|0|node")
    #expect(clock.mint(at: 1_767_225_603_000, now: 1_767_225_603_000) == "2026-01-01T00:00:03.000Z|1|node")
    #expect(clock.mint(at: 1_767_225_600_000, now: 1_767_225_600_000) == "2026-01-01T00:00:03.000Z|2|node")
    #expect(clock.mint(at: 1_767_225_603_001, now: 1_767_225_603_001) == "2026-01-01T00:00:03.001Z|0|node")
    #expect(HybridClock(state: clock.state) { "other" } == clock)
  }

  @Test func aClockFarAheadIsDroppedAndTheNodeKept() {
    var clock = HybridClock(state: "\(10 * HybridClock.maximumLead)|7|node") { "other" }
    #expect(clock.mint(at: 1000, now: 1000) == "1970-01-01T00:00:01.000Z|0|node")
  }
}
