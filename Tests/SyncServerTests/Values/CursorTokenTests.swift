import SyncServer
import Testing

@Suite struct CursorTokenTests {
  @Test(arguments: ["0", "42", "6~5", "9~5.7", "0:0", "0:2", "4:6", "12:3", "4:6~5", "9223372036854775807"])
  func readsAndWrites(text: String) {
    #expect(CursorToken(text)?.description == text)
  }

  @Test(arguments: [
    "", "06", "6~0", "6~6", "10~8.3", "10~3.3", "9~", "9~05", ":6", "1:2:3", "04:6", "4:", "-1:6", "+6", " 6", "6 ",
    "6~5.", "6~.5", "a", "9223372036854775808", "6:~5", "٣",
  ])
  func refuses(text: String) {
    #expect(CursorToken(text) == nil)
  }

  @Test func theStartDecidesTheCheckpoint() {
    #expect(CursorToken("4:6~5") == CursorToken(start: 4, highWater: 6, holes: [5]))
    #expect(CursorToken("4:6")?.checkpoint == 4)
    #expect(CursorToken("6")?.checkpoint == 6)
  }
}
