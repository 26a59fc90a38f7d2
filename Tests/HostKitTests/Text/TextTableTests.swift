import HostKit
import Testing

@Suite struct TextTableTests {
  @Test func alignsNumbersToTheRight() {
    let table = TextTable.table(["stage", "p50"], [["total", "1.25"], ["frame received", "0.5"]])
    #expect(table == "stage            p50\ntotal           1.25\nframe received   0.5")
  }
}
