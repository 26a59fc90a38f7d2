import HostKit
import Testing

@Suite struct JSONValueTests {
  private static let documents: [(String, JSONValue)] = [
    ("null", JSONValue.null), ("true", true), (" false ", false), ("\"\"", ""), ("[]", []), ("{}", [:]),
    ("[1,[2,{\"a\":null}]]", [1, [2, ["a": nil]]]), ("{\"a\":\"b\",\"c\":{}}", ["a": "b", "c": [:]]),
  ]

  @Test(arguments: documents)
  func parses(text: String, value: JSONValue) throws {
    #expect(try JSONValue(parsing: text) == value)
    #expect(try JSONValue(parsing: Array(text.utf8)) == value)
    #expect(try JSONValue(parsing: text.utf8.lazy.map { $0 }) == value)
  }

  @Test func stringsAreEqualByTheirBytes() {
    let (composed, decomposed) = ("\u{E9}", "e\u{301}")
    #expect(composed == decomposed)
    #expect(JSONValue.string(composed) != .string(decomposed))
    #expect(JSONValue.array([.string(composed)]) != [.string(decomposed)])
    #expect(JSONValue.string(composed) == .string(composed))
  }

  @Test(arguments: [
    "", " ", "nul", "truex", "[1,]", "[1 2]", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{\"a\"}", "[", "{", "\"", "\"\\",
    "\"\\u12",
    "\"\\x\"", "\"\\u12G4\"", "\"\u{1}\"", "01", "-", "1.", ".5", "1e", "1e+", "+1", "1 2", "[1]]", "NaN", "'a'",
    "// x\n1",
  ])
  func refuses(text: String) {
    #expect(throws: JSONSyntaxError.self) { try JSONValue(parsing: text) }
    // Stepping over a value checks as much as reading it.
    #expect(throws: JSONSyntaxError.self) {
      try Array(text.utf8).withUnsafeBytes { bytes in
        var cursor = JSONCursor(bytes)
        try cursor.skipValue()
        try cursor.expectEnd()
      }
    }
  }

  @Test func errorsNameTheByteAndNotTheText() {
    #expect {
      try JSONValue(parsing: "{\"password\": hunter2}")
    } throws: { error in
      (error as? JSONSyntaxError)?.offset == 13 && !"\(error)".contains("hunter")
    }
  }

  @Test(arguments: [
    ("\"\\u00e9\\n\\t\\/\\\\\\\"\"", "é\n\t/\\\""), ("\"\\ud83d\\ude00\"", "😀"), ("\"a\\u0000b\"", "a\0b"),
    // Half a surrogate pair cannot be Swift text.
    ("\"\\ud83d\"", "\u{FFFD}"), ("\"\\ud83d\\u0041\"", "\u{FFFD}A"), ("\"\\ude00\\ud83d\"", "\u{FFFD}\u{FFFD}"),
    ("\"\\b\\f\\r\"", "\u{8}\u{C}\r"), ("\"\\uD83D\\uDE00!\"", "😀!"),
  ])
  func decodesEscapes(text: String, expected: String) throws {
    #expect(try JSONValue(parsing: text) == .string(expected))
  }

  @Test(arguments: [
    "0", "-0", "9007199254740993", "-9223372036854775808", "1.10", "1E400", "0.1e-7", "123456789012345678901",
  ])
  func keepsTheDigitsOfNumbers(lexeme: String) throws {
    let value = try JSONValue(parsing: lexeme)
    #expect(value.numberValue?.lexeme == lexeme)
    #expect(JSONWriter.text(value) == lexeme)
  }

  @Test func equalityIsStrict() throws {
    #expect(try JSONValue(parsing: "1") != JSONValue(parsing: "1.0"))
    #expect(JSONValue.bool(false) != 0)
    #expect(JSONValue.null != 0)
  }

  @Test func theLastOfTwoEqualKeysCounts() throws {
    #expect(try JSONValue(parsing: "{\"a\":1,\"a\":2}") == ["a": 2])
  }

  /// Two members to everybody else, one key to Swift.
  @Test func namesThatDifferInNormalisationOnlyAreRefusedRatherThanMerged() throws {
    #expect(throws: JSONSyntaxError.self) { try JSONValue(parsing: #"{"\u00e9":1,"e\u0301":2}"#) }
    #expect(throws: JSONSyntaxError.self) { try JSONValue(parsing: #"[{"x":{"e\u0301":2,"\u00e9":1}}]"#) }
    #expect(try JSONValue(parsing: #"{"e\u0301":2}"#) == ["e\u{301}": 2])
  }

  @Test func refusesNestingThatWouldExhaustTheStack() throws {
    let deep = JSONCursor.maximumDepth
    let fits = String(repeating: "[", count: deep) + String(repeating: "]", count: deep)
    #expect(throws: Never.self) { try JSONValue(parsing: fits) }
    let tooDeep = String(repeating: "[", count: 100_000)
    #expect(throws: JSONSyntaxError.self) { try JSONValue(parsing: tooDeep) }
    #expect(throws: JSONSyntaxError.self) { try Self.skip(tooDeep) }
  }

  private static func skip(_ text: String) throws -> Range<Int> {
    try Array(text.utf8).withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes)
      let range = try cursor.skipValue()
      try cursor.expectEnd()
      return range
    }
  }

  @Test func anyDepthIsSteppedOver() throws {
    for (opening, end) in [("[", "]"), (#"{"a":[1,"#, "]}"), (#"[{}, [] ,{"x" : "#, "}]")] {
      let text = String(repeating: opening, count: 50_000) + "null" + String(repeating: end, count: 50_000)
      #expect(try Self.skip(" " + text + " ") == 1..<(1 + text.utf8.count))
    }
  }

  /// Stepping over accepts and refuses what building does.
  @Test(
    arguments: [
      "[]", "{}", "[ ]", "{ }", "[1]", "[1,2]", "[[],{}]", #"{"a":1}"#, #"{"a":1,"b":[true,false,null]}"#, "1", "\"x\"",
      "", " ", "[", "{", "]", "}", "[1,]", "[,1]", "[1 2]", "[1}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,"a":1}"#,
      #"{"a":1]"#, #"{"a" 1}"#, #"{1:1}"#, #"{"a":1 "b":2}"#, "[1]]", "{}{}", "[tru]", "[\"]", "[01]", "[[1]", ":", ",",
    ])
  func steppingOverIsAsStrict(text: String) {
    #expect(((try? Self.skip(text)) != nil) == ((try? JSONValue(parsing: text)) != nil), "\(text)")
  }

  @Test func accessorsAnswerNilForOtherKinds() throws {
    let value: JSONValue = ["n": 3, "s": "x", "b": true, "a": [1, 2], "z": nil]
    #expect(value["n"]?.intValue == 3)
    #expect(value["s"]?.stringValue == "x")
    #expect(value["b"]?.boolValue == true)
    #expect(value["a"]?[1] == 2)
    #expect(value["a"]?[2] == nil)
    #expect(value["z"]?.isNull == true)
    #expect(value["missing"] == nil)
    #expect(value["s"]?.intValue == nil)
    #expect(try JSONValue(parsing: "1.5").intValue == nil)
    #expect(try JSONValue(parsing: "9223372036854775808").intValue == nil)
  }
}
