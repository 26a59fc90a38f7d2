import Testing

@testable import KizunaSync

@Suite struct JournalTimeTests {
  @Test func readsBothSpellings() {
    #expect(JournalTime.milliseconds(.integer(1_700_000_000_123)) == 1_700_000_000_123)
    #expect(JournalTime.milliseconds(.real(2_440_587.5)) == 0)
    #expect(JournalTime.milliseconds(.null) == 0)
  }

  @Test func isWhatSQLiteSays() throws {
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    for milliseconds: Int64 in [0, 1, 999, 1_700_000_000_123, 4_102_444_799_999] {
      let day = try #require(
        try database.value(
          "SELECT julianday(?1 / 1000, 'unixepoch') + (?1 % 1000) / 86400000.0", .integer(milliseconds)))
      #expect(JournalTime.milliseconds(day) == milliseconds)
    }
  }
}
