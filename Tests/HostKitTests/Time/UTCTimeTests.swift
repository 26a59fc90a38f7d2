import HostKit
import Testing

@Suite struct UTCTimeTests {
  @Test(arguments: [
    (1970, 1, 1, 0, 4), (2000, 2, 29, 951_782_400, 2), (2024, 2, 29, 1_709_164_800, 4),
    (2100, 3, 1, 4_107_542_400, 1), (1, 1, 1, -62_135_596_800, 1), (9999, 12, 31, 253_402_214_400, 5),
  ])
  func datesHaveTheirSecond(year: Int64, month: Int64, day: Int64, seconds: Int64, weekday: Int) throws {
    let time = try #require(UTCTime(year: year, month: month, day: day))
    #expect(time.secondsSince1970 == seconds)
    #expect(time.weekday == weekday)
    #expect(UTCTime(secondsSince1970: seconds) == time)
  }

  @Test(arguments: [
    (2023, 2, 29), (2100, 2, 29), (2024, 2, 30), (2024, 4, 31), (2024, 0, 1), (2024, 13, 1), (2024, 1, 0),
    (2024, 1, 32),
    (10_000, 1, 1), (Int64.max, 1, 1),
  ])
  func datesOfNoCalendarAreNone(year: Int64, month: Int64, day: Int64) {
    #expect(UTCTime(year: year, month: month, day: day) == nil)
  }

  @Test func theLeapSecondBelongsToTheNextDay() {
    let time = UTCTime(year: 2026, month: 12, day: 31, hour: 23, minute: 59, second: 60)
    #expect(time?.secondsSince1970 == 1_798_761_600)
    #expect(time?.weekday == 4)
  }

  @Test func whatIsBeyondTheCalendarIsClamped() {
    #expect(UTCTime(secondsSince1970: .max).text == "9999-12-31T23:59:59")
    #expect(UTCTime(secondsSince1970: .min).year == -9999)
  }
}
