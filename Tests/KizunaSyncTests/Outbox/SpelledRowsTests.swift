import Testing

@testable import KizunaSync

@Suite struct SpelledRowsTests {
  @Test func theRowIsGoneWithItsLastSpelling() {
    var rows = SpelledRows()
    #expect(rows.isEmpty && rows.remove([7]) == nil)
    rows.put(["7"], ["a": 1])
    rows.put([7], ["a": 2])
    rows.put(["7"], ["a": 3])
    #expect(rows.keys == [[7], ["7"]])
    #expect(rows.remove(["7"]) == ["a": 2])
    #expect(rows.remove([7]) == nil && rows.isEmpty)
  }

  @Test func aSpellingThatChangesIsNotAnotherRow() {
    var rows = SpelledRows()
    rows.put(["7"], ["a": 1])
    rows.put([7], was: ["7"], ["a": 1])
    #expect(rows.keys == [[7]])
  }
}
