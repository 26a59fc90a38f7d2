import HTTPClient
import Testing

@Suite struct RetryAfterTests {
  @Test(
    arguments: [
      ("60", 60), (" 7 ", 7), ("0", 0), ("Sun, 06 Nov 1994 08:50:37 GMT", 60), ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
      ("Sun, 06 Nov 1994 08:00:00 GMT", 0), ("99999999999999999999", .max),
    ])
  func bothFormsAreRead(text: String, seconds: Int) {
    #expect(RetryAfter.seconds(text, now: 784_111_777_000) == seconds)
  }

  @Test func aPartOfASecondIsWaitedForToo() {
    #expect(RetryAfter.seconds("Sun, 06 Nov 1994 08:49:38 GMT", now: 784_111_777_001) == 1)
  }

  @Test(arguments: ["", "soon", "-5", "+5", "1.5", "1 5", "Sun, 06 Nov 1994"])
  func anythingElseIsNot(text: String) {
    #expect(RetryAfter.seconds(text, now: 0) == nil)
  }
}
