import Testing

@testable import PhoenixChannels

/// What a report may say. The classes are `ClassificationTests`.
@Suite struct FailureReportTests {
  @Test func reportsAreShortAndHoldNoTokens() {
    let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmnopqrstuvwxyz"
    let report = RefusalTables.join(reason: "odd \(token)\n\u{1b}[31m " + String(repeating: "word ", count: 200)).report
    #expect(!report.text.contains("eyJ"))
    #expect(!report.text.contains("\n") && !report.text.contains("\u{1b}"))
    #expect(report.text.count <= 200)
    #expect(RefusalTables.close(code: 1001, reason: "x").description == "close 1001: x")
    #expect(RefusalTables.upgrade(status: 503, body: nil).report.description.hasPrefix("HTTP 503: "))
  }
}
