import Foundation
import HostKit
import Testing

@testable import KizunaSync

@Suite struct TimestampTextTests {
  /// What PostgreSQL and its clients write; microseconds since 1970.
  private static let read: [(String, Int64?)] = [
    ("1970-01-01T00:00:00Z", 0), ("1970-01-01", 0), ("1970-01-01 00:00", 0),
    ("2026-01-01T00:00:09.000Z", 1_767_225_609_000_000), ("2026-01-01T00:00:09.123456+00:00", 1_767_225_609_123_456),
    ("2026-01-01T02:00:09.5+02", 1_767_225_609_500_000), ("2025-12-31T18:30:09-05:30", 1_767_225_609_000_000),
    ("2025-12-31 18:30:09-0530", 1_767_225_609_000_000), ("2026-01-01T00:00:09.1234560", 1_767_225_609_123_456),
    ("2024-02-29", 1_709_164_800_000_000), ("1969-12-31T23:59:59.999999Z", -1),
    ("0001-01-01", -62_135_596_800_000_000), ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ("2000-02-29T12:00:00Z", 951_825_600_000_000),
    ("2026-02-29", nil), ("1900-02-29", nil), ("2026-13-01", nil), ("2026-00-01", nil), ("2026-04-31", nil),
    ("2026-01-01T24:00:00Z", nil), ("2026-01-01T00:60:00Z", nil), ("2026-01-01T00:00:60Z", nil),
    ("2026-01-01T00:00:00.Z", nil), ("2026-01-01T00:00:00.1234567Z", nil), ("2026-01-01T00:00:00+", nil),
    ("2026-01-01T00:00:00Zx", nil), ("2026-1-1", nil), ("", nil), ("infinity", nil), ("26-01-01", nil),
    ("2026-01-01T", nil),
  ]

  @Test(arguments: read)
  func reads(text: String, microseconds: Int64?) {
    #expect(TimestampText.microseconds(text) == microseconds)
    #expect((TimestampText.date(text) == nil) == (microseconds == nil))
  }

  @Test func aDateReadsBackToTheMicrosecond() throws {
    var random = SeededRandom(7)
    for _ in 0..<5_000 {
      let microseconds = Int64.random(in: -62_135_596_800_000_000...253_402_300_799_999_999, using: &random)
      // A double holds microseconds near our time only; farther away it is what the date itself holds.
      let near = abs(microseconds - 978_307_200_000_000) < 4_000_000_000_000_000
      let date = Date(
        timeIntervalSinceReferenceDate: Double(microseconds / 1_000_000 - 978_307_200)
          + Double(microseconds % 1_000_000) / 1e6)
      let text = try #require(TimestampText.text(date))
      let again = try #require(TimestampText.microseconds(text))
      #expect(near ? again == microseconds : abs(again - microseconds) < 100, "\(text)")
      if near { #expect(TimestampText.date(text) == date) }
    }
    #expect(TimestampText.text(Date(timeIntervalSince1970: 0)) == "1970-01-01T00:00:00.000Z")
    #expect(TimestampText.text(Date(timeIntervalSince1970: -0.25)) == "1969-12-31T23:59:59.750Z")
    #expect(TimestampText.text(Date(timeIntervalSinceReferenceDate: 0.9999999)) == "2001-01-01T00:00:01.000Z")
    #expect(TimestampText.text(Date(timeIntervalSince1970: 1e12)) == nil)
    #expect(TimestampText.text(Date(timeIntervalSince1970: .infinity)) == nil)
    // Two days before the year 1.
    #expect(TimestampText.text(.distantPast) == nil)
  }

  @Test func bytes() {
    #expect(BytesText.text([]) == "\\x" && BytesText.bytes("\\x") == Data())
    #expect(BytesText.bytes("\\x00fFa0") == Data([0, 255, 160]))
    for text in ["", "x00", "\\x0", "\\x0g", "\\y00", "\\x00 "] { #expect(BytesText.bytes(text) == nil) }
  }
}
