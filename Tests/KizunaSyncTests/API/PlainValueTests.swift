import Foundation
import HostKit
import Testing

@testable import KizunaSync

/// Values keep their types across the public surface, in both directions.
@Suite struct PlainValueTests {
  static var cases: [(Any, String)] {
    [
      (true, "true"), (false, "false"), (0, "0"), (1, "1"), (Int64.max, "9223372036854775807"),
      (Int64.min, "-9223372036854775808"), (UInt64.max, "18446744073709551615"), (UInt8(1), "1"), (1.5, "1.5"),
      (Float(0.5), "0.5"), (1e300, "1e+300"), ("", "\"\""), ("é\u{0}\"", "\"é\\u0000\\\"\""), (NSNull(), "null"),
      ([1, "a", NSNull(), false] as [Any], "[1,\"a\",null,false]"),
      (["k": ["v": 0]] as [String: Any], "{\"k\":{\"v\":0}}"),
      ([Any](), "[]"), ([String: Any](), "{}"), (Optional<Int>.none as Any, "null"), (Optional(7) as Any, "7"),
      (NSNumber(value: true), "true"), (NSNumber(value: 1), "1"), (NSNumber(value: 1.5), "1.5"),
      (NSNumber(value: Int64.max), "9223372036854775807"), (NSNumber(value: false), "false"),
      (NSNumber(value: UInt64.max), "18446744073709551615"), (Decimal(string: "0.10")!, "0.1"),
      (Substring("ab"), "\"ab\""), ([["x"], ["y"]] as [[String]], "[[\"x\"],[\"y\"]]"),
      ([true, false], "[true,false]"),
      (UUID(uuidString: "0B6C0000-0000-4000-8000-00000000000A")!, "\"0b6c0000-0000-4000-8000-00000000000a\""),
    ]
  }

  @Test func everyTypeKeepsItsKind() throws {
    for (value, expected) in Self.cases {
      #expect(JSONWriter.text(try PlainValue.json(from: value, at: "x")) == expected, "\(type(of: value))")
    }
  }

  @Test func whatJSONCannotSayIsRefusedByPlace() throws {
    for value in [Date(), Data(), Double.nan, Double.infinity, Float.nan, ["a": Date()]] as [Any] {
      let error = try #require(throws: KizunaSyncError.self) { try PlainValue.json(from: ["col": value], at: "notes") }
      #expect(error.code == "LOCAL_UNSUPPORTED")
      #expect(error.message.contains("notes.col"))
    }
  }

  @Test func numbersComeBackExactly() {
    func back(_ lexeme: String) -> Any { PlainValue.any(from: .number(JSONNumber(lexeme: lexeme)!)) }
    #expect(back("9223372036854775807") as? Int == .max)
    #expect(back("1") is Int)
    #expect(back("1.5") as? Double == 1.5)
    #expect(back("0.10") as? Double == 0.1)
    #expect(back("9223372036854775808") as? String == "9223372036854775808")
    #expect(back("9223372036854775809") as? String == "9223372036854775809")
    #expect(back("12345678901234567890.123456789") as? String == "12345678901234567890.123456789")
  }

  @Test func booleansComeBackAsBooleans() {
    let row = PlainValue.any(from: ["t": true, "n": 1, "z": 0, "null": nil]) as? [String: Any]
    #expect(type(of: row!["t"]!) == Bool.self)
    #expect(type(of: row!["n"]!) == Int.self)
    #expect(type(of: row!["z"]!) == Int.self)
    #expect(row!["null"] is NSNull)
  }
}
