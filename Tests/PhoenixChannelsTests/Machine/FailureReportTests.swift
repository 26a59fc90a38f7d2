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
    #expect(RefusalTables.upgrade(status: 503, body: nil).report.description.hasPrefix("HTTP 503: "))
  }

  /// A peer may quote what it was sent: only what the tables know is spelled.
  @Test(arguments: ["SECRETMSG", "SECRETMSG: more", "the secret is SECRETMSG", "Unknown: SECRETMSG"])
  func aTextThatIsNotKnownIsWithheld(text: String) {
    for report in [
      RefusalTables.close(code: 1001, reason: text), RefusalTables.close(code: 3000, reason: text),
      RefusalTables.join(reason: text).report, RefusalTables.system(message: text).report,
      RefusalTables.subscription(message: text), RefusalTables.upgrade(status: 401, body: text).report,
      RefusalTables.upgrade(status: 418, body: #"{"error":"\#(text)"}"#).report,
      RefusalTables.upgrade(status: 403, body: #"{"message":"\#(text)"}"#).report,
    ] { #expect(!report.description.contains("SECRETMSG"), "\(report)") }
    #expect(
      RefusalTables.close(code: 1001, reason: text).description == "close 1001: the server sent us away (text withheld)"
    )
  }

  /// The texts of a refused upgrade (Realtime wire contract §1).
  @Test(arguments: [
    (401, "API key is missing"), (401, "Token has expired"), (401, "Fields `role` and `exp` are required"),
    (401, "The token provided is not a valid JWT"), (401, "Failed to validate JWT signature"),
    (401, "Failed to generate JWT signer"), (403, "Realtime was disabled"), (404, "Tenant not found"),
    (429, "Too many connected users"), (429, "Too many joins per second"), (500, "Error connecting to Realtime"),
  ])
  func theTextsOfARefusedUpgradeAreSpelled(status: Int, text: String) {
    let report = RefusalTables.upgrade(status: status, body: #"{"error":"\#(text)"}"#).report
    #expect(report.description.contains(text) && !report.description.contains("withheld"), "\(report)")
  }

  @Test func whatIsKnownIsSpelledWithoutWhatFollows() {
    #expect(
      RefusalTables.join(reason: "InvalidJWTToken: Token has expired 3 seconds ago SECRETMSG").report.text
        == "InvalidJWTToken: Token has expired")
    #expect(RefusalTables.join(reason: "Unauthorized: SECRETMSG").report.text == "Unauthorized")
    #expect(
      RefusalTables.close(code: 1001, reason: "Too many joins per second SECRETMSG").text == "Too many joins per second"
    )
    #expect(RefusalTables.join(reason: "").report.text == "refused without a reason")
  }
}
