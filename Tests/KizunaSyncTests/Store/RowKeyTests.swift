import HostKit
import Testing

@testable import KizunaSync

@Suite struct RowKeyTests {
  @Test(arguments: [
    (["abc"], "abc"), (["[\"x\"]"], "[\"x\"]"), (["-7"], "-7"), (["1", "12"], "[\"1\", \"12\"]"),
    (["q\"", "é/ü"], "[\"q\\\"\", \"é/ü\"]"), (["a\n\u{1}", "b"], "[\"a\\n\\u0001\", \"b\"]"),
    (["a,b", "c"], "[\"a,b\", \"c\"]"),
    (["a", "b,c"], "[\"a\", \"b,c\"]"), (["", "x"], "[\"\", \"x\"]"),
  ])
  func keysAreSpelledAsPostgresPrintsThem(parts: [String], text: String) {
    #expect(RowKey.spell(parts) == text)
    #expect(RowKey.parts(of: text, count: parts.count) == parts)
  }

  @Test func uuidsAreLowerCaseAndOtherTextIsNot() {
    #expect(RowKey.canonical("ABCDEF01-2345-4789-ABCD-EF0123456789") == "abcdef01-2345-4789-abcd-ef0123456789")
    #expect(RowKey.canonical("ABCDEF01-2345-4789-ABCD-EF012345678G") == "ABCDEF01-2345-4789-ABCD-EF012345678G")
    #expect(RowKey.canonical("HELLO") == "HELLO")
  }

  @Test func aGivenCompositeKeyIsSpelledAgain() {
    #expect(RowKey.parts(of: "[1,\"b\"]", count: 2) == ["1", "b"])
    #expect(RowKey.parts(of: "[1]", count: 2) == nil)
    #expect(RowKey.parts(of: "[1.5, \"b\"]", count: 2) == nil)
    #expect(RowKey.parts(of: "", count: 1) == nil)
  }

  @Test func onlyTextAndIntegersArePartsOfAKey() {
    #expect(RowKey.part(.number(JSONNumber(lexeme: "9223372036854775808")!)) == "9223372036854775808")
    #expect(RowKey.part(.bool(true)) == nil)
    #expect(RowKey.part(.number(JSONNumber(1.5)!)) == nil)
    #expect(RowKey.part(JSONValue?.none) == nil)
    #expect(RowKey.part(SQLiteValue.real(1)) == nil)
  }
}
