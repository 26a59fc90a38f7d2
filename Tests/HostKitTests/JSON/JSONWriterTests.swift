import HostKit
import Testing

@Suite struct JSONWriterTests {
  @Test func sortsMembersByBytesAndEscapesOnlyWhatItMust() {
    let value: JSONValue = ["b": 1, "a": "é/\"\\\n\u{1}", "B": [], "ä": nil, "aa": ["x": true]]
    #expect(JSONWriter.text(value) == #"{"B":[],"a":"é/\"\\\n\u0001","aa":{"x":true},"b":1,"ä":null}"#)
  }

  @Test func indents() {
    let value: JSONValue = ["a": [1, [:]], "b": []]
    #expect(JSONWriter.text(value, indent: 2) == "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}")
  }

  /// What is written reads back as itself, for generated documents with every kind of value.
  @Test func readsBackWhatItWrote() throws {
    var random = SeededRandom(7)
    for _ in 0..<500 {
      let value = random.value(depth: 4)
      #expect(try JSONValue(parsing: JSONWriter.text(value)) == value)
      #expect(try JSONValue(parsing: JSONWriter.text(value, indent: 1)) == value)
    }
  }
}

extension SeededRandom {
  fileprivate mutating func text() -> String {
    let pieces = ["a", "\"", "\\", "\u{0}", "\u{1F}", "é", "😀", "/", "\n", " ", "\u{7F}", "\u{2028}"]
    return (0..<Int.random(in: 0...5, using: &self)).map { _ in pieces.randomElement(using: &self)! }.joined()
  }

  fileprivate mutating func value(depth: Int) -> JSONValue {
    switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &self) {
    case 0: return .null
    case 1: return .bool(.random(using: &self))
    case 2: return .int(Int64(bitPattern: next()))
    case 3: return .number(JSONNumber(Double(bitPattern: next())) ?? JSONNumber(0))
    case 4: return .string(text())
    case 5: return .array((0..<Int.random(in: 0...3, using: &self)).map { _ in value(depth: depth - 1) })
    default:
      var object: [String: JSONValue] = [:]
      for _ in 0..<Int.random(in: 0...3, using: &self) { object[text()] = value(depth: depth - 1) }
      return .object(object)
    }
  }
}
