import HostKit
import Testing

@testable import KizunaSync

@Suite struct TransformTests {
  @Test(
    arguments: [
      (nil, "1", JSONValue.int(1)), (JSONValue.null, "-3", .int(-3)), (.int(4), "1", .int(5)),
      (.int(2_147_483_647), "1", "2147483648"), ("9223372036854775807", "1", "9223372036854775808"),
      ("-9223372036854775808", "-1", "-9223372036854775809"), (.int(Int64.min + 1), "-1", "-9223372036854775808"),
      (nil, "-9223372036854775808", "-9223372036854775808"), ("2147483648", "-1", .int(2_147_483_647)),
      ("text", "1", "text"), (.bool(true), "1", .bool(true)),
    ] as [(JSONValue?, String, JSONValue)])
  func increments(cell: JSONValue?, by: String, result: JSONValue) throws {
    #expect(try Transform.increment(by: by).applied(to: cell, column: "n") == result)
  }

  @Test func arraysKeepOrderAndCountMembersOnce() throws {
    #expect(try Transform.arrayUnion(["b", "c", "c"]).applied(to: ["a", "b"], column: "t") == ["a", "b", "c"])
    #expect(try Transform.arrayRemove(["a", 1]).applied(to: ["a", "b", "a", 1, "1"], column: "t") == ["b", "1"])
    #expect(try Transform.arrayUnion(["a"]).applied(to: nil, column: "t") == ["a"])
    #expect(throws: KizunaSyncError.self) { try Transform.arrayUnion(["a"]).applied(to: "text", column: "t") }
  }

  @Test func largeAmountsTravelAsText() throws {
    #expect(try Transform(["op": "increment", "by": 5], column: "n").wire == ["op": "increment", "by": 5])
    #expect(
      try Transform(["op": "increment", "by": 4_294_967_296], column: "n").wire
        == ["op": "increment", "by": "4294967296"])
    #expect(
      try Transform(["op": "increment", "by": .int(Int64.min)], column: "n").wire
        == ["op": "increment", "by": "-9223372036854775808"])
  }

  @Test(
    arguments: [
      ["op": "multiply", "by": 2], ["op": "increment"], ["op": "increment", "by": "1.5"],
      ["op": "increment", "by": "007"],
      ["op": "arrayUnion", "values": []], ["op": "arrayUnion", "values": [[1]]], "increment",
    ] as [JSONValue])
  func otherFormsAreRefused(form: JSONValue) {
    let error = #expect(throws: KizunaSyncError.self) { try Transform(form, column: "n") }
    #expect(error?.code == "LOCAL_UNSUPPORTED")
  }

  @Test(arguments: [
    ("99999999999999999999", "1", "100000000000000000000"), ("-1", "100000000000000000000", "99999999999999999999"),
    ("100000000000000000000", "-100000000000000000000", "0"), ("-5", "-99999999999999999999", "-100000000000000000004"),
  ])
  func sumsHaveAnyLength(left: String, right: String, sum: String) {
    #expect(DecimalSum.add(left, right) == sum)
    #expect(DecimalSum.add(right, left) == sum)
  }
}
