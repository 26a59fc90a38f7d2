import Testing

@testable import KizunaSync

@Suite struct CursorTokenTests {
  @Test(arguments: ["0", "42", "6~5", "9~5.7", "0:0", "0:2", "4:6", "12:3", "4:6~5", "9223372036854775807"])
  func accepts(text: String) {
    #expect(CursorToken.isWellFormed(text))
  }

  @Test(arguments: [
    "", "06", "6~0", "9~", "9~05", ":6", "1:2:3", "04:6", "4:", "-1:6", "+6", " 6", "6~5~4", "x",
    "6~6", "10~8.3", "9~5.5", "9223372036854775808", "4:6~7",
  ])
  func refuses(text: String) {
    #expect(!CursorToken.isWellFormed(text))
  }
}
