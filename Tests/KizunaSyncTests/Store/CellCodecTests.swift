import HostKit
import Testing

@testable import KizunaSync

@Suite struct CellCodecTests {
  private func json(_ text: String) -> JSONValue { try! JSONValue(parsing: text) }

  @Test(arguments: [
    ("1", ColumnKind.number, SQLiteValue.integer(1)), ("9223372036854775807", .number, .integer(.max)),
    ("-9223372036854775808", .number, .integer(.min)), ("9007199254740993", .number, .integer(9_007_199_254_740_993)),
    ("0.1", .number, .real(0.1)), ("1e+20", .number, .real(1e20)), ("\"x\"", .text, .text("x")),
    ("true", .boolean, .integer(1)), ("{\"k\":0}", .json, .text("{\"k\":0}")), ("\"123\"", .json, .text("\"123\"")),
    ("123", .json, .text("123")), ("true", .json, .text("true")), ("[null,\"a,b\"]", .json, .text("[null,\"a,b\"]")),
  ])
  func exactValuesSurviveTheRoundTrip(text: String, kind: ColumnKind, cell: SQLiteValue) {
    let value = json(text)
    #expect(CellCodec.encode(value, kind: kind) == cell)
    #expect(CellCodec.decode(cell, kind: kind) == value)
  }

  @Test(arguments: ["0.10", "12345678901234567890.123456789", "1.50", "9223372036854775808", "1e400"])
  func numbersThatWouldLoseDigitsAreKeptAsText(lexeme: String) {
    #expect(CellCodec.encode(json(lexeme), kind: .number) == .text(lexeme))
    #expect(CellCodec.decode(.text(lexeme), kind: .number) == .string(lexeme))
  }

  @Test func exactDecimalsAreAlwaysText() {
    #expect(CellCodec.encode(json("0.1"), kind: .numeric) == .text("0.1"))
    #expect(CellCodec.encode(json("5"), kind: .numeric) == .text("5"))
  }

  @Test func sixEmptyThingsStaySix() {
    let cells = ["null", "\"\"", "0", "false", "[]"].map { text -> SQLiteValue in
      let value = json(text)
      return CellCodec.encode(value, kind: CellCodec.kind(of: value))
    }
    #expect(cells == [.null, .text(""), .integer(0), .integer(0), .text("[]")])
    #expect(CellCodec.decode(cells[3], kind: .boolean) == .bool(false))
    #expect(CellCodec.decode(cells[2], kind: .number) == .int(0))
  }

  @Test func whatJSONLacksHasAName() {
    #expect(CellCodec.decode(.real(.infinity), kind: .number) == "Infinity")
    #expect(CellCodec.decode(.blob([0, 0xAB]), kind: nil) == "\\x00ab")
    #expect(CellCodec.decode(.text("not json"), kind: .json) == "not json")
    #expect(CellCodec.decode(.integer(2), kind: .boolean) == .int(2))
  }
}
