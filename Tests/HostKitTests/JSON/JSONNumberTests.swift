import HostKit
import Testing

@Suite struct JSONNumberTests {
  @Test(arguments: [
    (0.0, "0"), (-0.0, "-0"), (1.5, "1.5"), (100.0, "100"), (1e16, "1e+16"), (.leastNonzeroMagnitude, "5e-324"),
    (0.1, "0.1"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
  ])
  func spellsDoublesSoThatTheyReadBack(value: Double, lexeme: String) throws {
    let number = try #require(JSONNumber(value))
    #expect(number.lexeme == lexeme)
    #expect(number.double == value)
    #expect(JSONNumber(lexeme: lexeme) == number)
  }

  @Test(arguments: [Double.infinity, -.infinity, .nan])
  func hasNoSpellingForWhatJSONCannotSay(value: Double) {
    #expect(JSONNumber(value) == nil)
  }

  @Test(arguments: ["", "1 ", " 1", "1x", "0x10", "1_000", "--1", "inf"])
  func refusesOtherText(text: String) {
    #expect(JSONNumber(lexeme: text) == nil)
  }

  @Test func tellsIntegersFromOthers() {
    #expect(JSONNumber(lexeme: "12")?.isInteger == true)
    #expect(JSONNumber(lexeme: "1.0")?.isInteger == false)
    #expect(JSONNumber(lexeme: "1e2")?.int64 == nil)
    #expect(JSONNumber(Int64.min).int64 == .min)
  }
}
