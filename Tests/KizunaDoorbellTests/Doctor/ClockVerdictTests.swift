import HostKit
import Testing

@testable import KizunaDoorbell

@Suite struct ClockVerdictTests {
  /// Server, asked, answered; how far the server is ahead for sure; what is said.
  private static let cases: [(Int64?, Int64, Int64, Int64, Finding.Status, String)] = [
    (nil, 0, 100, 0, .skipped, "does not tell"),
    (10_000, 10_100, 10_200, 0, .ok, "less than 5 s"),
    // The fraction of the second and the time of the exchange are no difference.
    (10_000, 10_999, 20_000, 0, .ok, "less than 5 s"),
    (10_000, 4_000, 5_000, 5_000, .ok, "less than 5 s"),
    (10_000, 4_000, 4_999, 5_001, .warning, "5 s behind"),
    (10_000, 16_000, 17_000, -5_001, .warning, "5 s ahead of"),
    (10_000, 15_999, 17_000, -5_000, .ok, "less than 5 s"),
    (7_210_000, 10_000, 10_100, 7_199_900, .warning, "7199 s behind"),
  ]

  @Test(arguments: cases)
  func differences(
    server: Int64?, asked: Int64, answered: Int64, offset: Int64, status: Finding.Status, words: String
  ) {
    let verdict = ClockVerdict(server: server, asked: asked, answered: answered)
    #expect(verdict.offset == offset)
    #expect(verdict.finding.status == status)
    #expect(verdict.finding.text.contains(words), "\(verdict.finding.text)")
  }
}
