import HostKit
import KizunaDoorbell
import Testing

@Suite struct LatencySummaryTests {
  @Test func ranksSamples() throws {
    let summary = try #require(LatencySummary((1...200).reversed().map { UInt64($0) * 1_000_000 }))
    #expect(summary.count == 200)
    #expect(summary.p50 == .milliseconds(100))
    #expect(summary.p90 == .milliseconds(180))
    #expect(summary.p99 == .milliseconds(198))
    #expect(summary.maximum == .milliseconds(200))
  }

  @Test func oneSampleIsEveryPercentile() throws {
    let summary = try #require(LatencySummary([1_234_567]))
    #expect(summary.p50 == 1_234_567 && summary.p99 == 1_234_567 && summary.maximum == 1_234_567)
    #expect(JSONWriter.text(summary.json) == #"{"max":1.235,"p50":1.235,"p90":1.235,"p99":1.235}"#)
  }

  @Test func noSamplesNoSummary() {
    #expect(LatencySummary([]) == nil)
  }
}
