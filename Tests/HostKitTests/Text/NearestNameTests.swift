import HostKit
import Testing

@Suite struct NearestNameTests {
  @Test(arguments: [
    ("tabels", "tables"), ("publishablekey", "publishableKey"), ("pollintervall", "pollInterval"), ("ur", "url"),
    ("databse", "database"),
  ])
  func findsWhatWasMeant(typed: String, meant: String) {
    #expect(NearestName.among(["url", "publishableKey", "database", "tables", "pollInterval"], to: typed) == meant)
  }

  @Test(arguments: ["colour", "x", ""])
  func proposesNothingFarFetched(typed: String) {
    #expect(NearestName.among(["url", "database"], to: typed) == nil)
  }

  @Test func countsASwapOfNeighboursOnce() {
    #expect(NearestName.among(["form", "for"], to: "from") == "form")
  }
}
