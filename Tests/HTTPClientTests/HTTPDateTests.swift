import HTTPClient
import Testing

@Suite struct HTTPDateTests {
  @Test(
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000),
      ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199_000), ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200_000),
      ("Sun, 28 Feb 2100 12:00:00 GMT", 4_107_499_200_000), ("Mon, 01 Mar 2100 12:00:00 GMT", 4_107_585_600_000),
      ("Thu, 31 Dec 2026 23:59:60 GMT", 1_798_761_600_000),
    ] as [(String, Int64)]) func isRead(text: String, milliseconds: Int64)
  {
    #expect(HTTPDate.milliseconds(text) == milliseconds)
  }

  @Test(arguments: [
    "", "now", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 CET",
    "Sun, 32 Nov 1994 08:49:37 GMT", "Thu, 31 Nov 1994 08:49:37 GMT", "Sun, 06 Nix 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 06 Nov 1994 08:49 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
  ]) func otherFormsAreNot(text: String) {
    #expect(HTTPDate.milliseconds(text) == nil)
  }

  @Test func theHeaderIsFoundWithoutRegardToCase() {
    let response = HTTPResponse(status: 200, headers: [HTTPHeader("date", "Thu, 01 Jan 1970 00:00:01 GMT")])
    #expect(response.serverDate == 1000)
    #expect(HTTPResponse(status: 200).serverDate == nil)
  }
}
