import HostKit
import Testing

@testable import SyncServer

@Suite struct ColumnTypeTests {
  private static func number(_ lexeme: String) -> JSONValue { JSONNumber(lexeme: lexeme).map(JSONValue.number) ?? nil }

  @Test(
    arguments: [
      (.text, "a", "a"), (.text, 5, "5"), (.text, true, "true"), (.text, ["k": 1], #"{"k":1}"#),
      (.integer, 7, 7), (.integer, "7", 7), (.integer, "-007", -7),
      (.bigint, "9007199254740993", number("9007199254740993")),
      (.numeric, number("0.10"), number("0.10")), (.numeric, "0.10", number("0.10")), (.boolean, "t", true),
      (.boolean, false, false), (.uuid, "00000000-0000-4000-8000-A10000000001", "00000000-0000-4000-8000-a10000000001"),
      (.textArray, ["a", 1, nil], ["a", "1", nil]), (.jsonb, ["k": [1, "1"]], ["k": [1, "1"]]),
      (.double, "1.5", number("1.5")),
      (.timestamptz, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), (.smallint, nil, nil),
    ] as [(ColumnType, JSONValue, JSONValue)])
  func casts(type: ColumnType, value: JSONValue, expected: JSONValue) throws {
    #expect(try type.cast(value) == expected)
  }

  @Test(
    arguments: [
      (.integer, "x", "22P02"), (.integer, 2_147_483_648, "22003"), (.integer, number("1.5"), "22P02"),
      (.integer, true, "22P02"),
      (.smallint, 40000, "22003"), (.bigint, "9223372036854775808", "22003"), (.numeric, "1,5", "22P02"),
      (.boolean, "maybe", "22P02"), (.uuid, "x", "22P02"), (.textArray, "x", "22P02"), (.textArray, [["a"]], "22P02"),
      (.timestamptz, "yesterday", "22007"), (.double, "1e999", "22003"),
    ] as [(ColumnType, JSONValue, String)])
  func refuses(type: ColumnType, value: JSONValue, code: String) {
    do throws(ColumnType.Refusal) {
      let cast = try type.cast(value)
      Issue.record("cast to \(cast)")
    } catch {
      #expect(error.code == code)
    }
  }

  @Test(
    arguments: [
      (nil, 1, 1, true), (nil, 1, "1", true), (nil, number("1.0"), 1, true), (nil, "a", "a", true),
      (nil, "1", "1.0", false),
      (nil, nil, nil, true), (nil, nil, 0, false), (nil, false, 0, false), (.numeric, "0.10", number("0.1"), true),
      (.text, 5, "5", true),
      (.uuid, "00000000-0000-4000-8000-A10000000001", "00000000-0000-4000-8000-a10000000001", true),
      (.integer, "x", "x", false),
    ] as [(ColumnType?, JSONValue, JSONValue, Bool)])
  func comparesTyped(type: ColumnType?, left: JSONValue, right: JSONValue, same: Bool) {
    #expect(ColumnType.same(left, right, type: type) == same)
  }

  @Test(arguments: [
    ("int8", ColumnType.bigint), ("VARCHAR", .text), ("double precision", .double), ("text[]", .textArray),
    ("timestamp with time zone", .timestamptz), ("bool", .boolean),
  ])
  func knowsItsNames(name: String, type: ColumnType) {
    #expect(ColumnType(name: name) == type)
    #expect(ColumnType(name: "money") == nil)
  }
}
