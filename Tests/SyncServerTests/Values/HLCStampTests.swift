import Testing

@testable import SyncServer

@Suite struct HLCStampTests {
  private func stamp(_ text: String) throws -> HLCStamp { try #require(HLCStamp(text)) }

  @Test func orderedByInstantThenCounterThenNode() throws {
    let ordered = [
      "2026-01-01T00:00:01.000Z|99|z", "2026-01-01T00:00:02.000Z|2|a", "2026-01-01T00:00:02.000Z|10|A",
      "2026-01-01T00:00:02.000Z|10|a|b", "2026-01-01T00:00:02.000Z|18446744073709551616|a",
    ]
    let stamps = try ordered.map(stamp)
    for (low, high) in zip(stamps, stamps.dropFirst()) {
      #expect(low < high)
      #expect(!(high < low))
    }
    #expect(stamps.map(\.description) == ordered)
    #expect(try !(stamp("2026-01-01T00:00:02.000Z|007|a") < stamp("2026-01-01T00:00:02.000Z|7|a")))
  }

  @Test(arguments: [
    "", "2026-01-01T00:00:02.000Z", "2026-01-01T00:00:02.000Z|1", "2026-01-01T00:00:02.000Z||a",
    "2026-01-01T00:00:02.000Z|1|", "2026-01-01T00:00:02Z|1|a", "2026-01-01T00:00:02.000Z|-1|a", "x|1|a",
  ])
  func refuses(text: String) {
    #expect(HLCStamp(text) == nil)
  }

  @Test func clampingLowersTheInstantOnly() throws {
    let ahead = try stamp("2026-01-01T00:00:09.000Z|3|a")
    #expect(ahead.clamped(to: "2026-01-01T00:00:05.000Z").description == "2026-01-01T00:00:05.000Z|3|a")
    #expect(ahead.clamped(to: "2026-01-01T00:00:10.000Z") == ahead)
  }
}
