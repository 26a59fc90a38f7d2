import HostKit
import Testing

@Suite struct UTCTimestampTests {
  @Test(arguments: [
    (0, "1970-01-01T00:00:00.000Z"), (1_767_225_599_999, "2025-12-31T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z"),
    (951_782_400_007, "2000-02-29T00:00:00.007Z"),
  ])
  func spells(milliseconds: Int64, text: String) {
    #expect(UTCTimestamp.text(milliseconds: milliseconds) == text)
  }
}
