import HostKit
import Testing

@testable import SyncServer

@Suite struct TransformTests {
  private static func number(_ lexeme: String) -> JSONValue { JSONNumber(lexeme: lexeme).map(JSONValue.number) ?? nil }

  private func apply(_ transform: JSONValue, _ cell: JSONValue, _ type: ColumnType? = nil) throws -> JSONValue? {
    try #require(Transform(transform)).applied(to: cell, type: type)
  }

  @Test(
    arguments: [
      (nil, nil, 5, 5), (nil, 1, 5, 6), (nil, 1, -5, -4), (nil, "7", 1, 8), (nil, 2_147_483_647, 1, "2147483648"),
      (nil, "2147483648", -1, 2_147_483_647), (nil, 0, "9999999999999999999", "9999999999999999999"),
      (nil, "start", 1, nil), (nil, true, 1, nil), (nil, [], 1, nil), (nil, number("1.5"), 1, number("2.5")),
      (.integer, nil, 1, 1), (.integer, 2_147_483_647, 1, nil),
      (.bigint, 9_007_199_254_740_993, 1, 9_007_199_254_740_994),
      (.bigint, 3_000_000_000, 1, 3_000_000_001), (.numeric, number("0.10"), 1, number("1.10")), (.text, "1", 1, nil),
      (.text, nil, 1, nil), (.double, number("1.5"), 1, number("2.5")), (.boolean, true, 1, nil),
      (.smallint, 5, "40000", nil),
    ] as [(ColumnType?, JSONValue, JSONValue, JSONValue?)])
  func increments(type: ColumnType?, cell: JSONValue, by: JSONValue, expected: JSONValue?) throws {
    // A literal nil for the result is JSON null, which no increment yields: it stands for a refusal.
    #expect(try apply(["op": "increment", "by": by], cell, type) == (expected == .null ? nil : expected))
  }

  @Test func unionsKeepOrderAndAddOnce() throws {
    #expect(try apply(["op": "arrayUnion", "values": ["b", "c", "c", "a"]], ["a", "b"]) == ["a", "b", "c"])
    #expect(try apply(["op": "arrayUnion", "values": [1, "1", false]], nil) == [1, "1", false])
    #expect(try apply(["op": "arrayUnion", "values": ["x"]], "text") == nil)
    #expect(try apply(["op": "arrayUnion", "values": [1]], ["1"], .textArray) == ["1"])
    #expect(try apply(["op": "arrayUnion", "values": ["x"]], [], .jsonb) == nil)
  }

  @Test func removalsTakeEveryEqualMember() throws {
    #expect(try apply(["op": "arrayRemove", "values": ["a", 1]], ["a", "b", "a", "1", 1]) == ["b", "1"])
    #expect(try apply(["op": "arrayRemove", "values": ["a"]], nil) == [])
  }
}
