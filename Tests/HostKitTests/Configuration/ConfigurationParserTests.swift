import HostKit
import Testing

@Suite struct ConfigurationParserTests {
  @Test func readsCommentsAndTrailingCommas() throws {
    let text = """
      // top
      { /* inside
           two lines */ "a": [1, 2.50, ], // end
        "b": {"c": "x\\u00e9\\ud83d\\ude00//no comment", "d": null,},
        "t": true,
      } // after
      """
    let (node, problems) = ConfigurationParser.parse(text)
    #expect(problems.isEmpty)
    guard case .object(let members)? = node?.value else {
      Issue.record("not an object")
      return
    }
    #expect(members.map(\.key) == ["a", "b", "t"])
    #expect(members[0].position == SourcePosition(line: 3, column: 19))
    guard case .array(let numbers) = members[0].value.value, case .object(let inner) = members[1].value.value else {
      Issue.record("wrong kinds")
      return
    }
    #expect(numbers.map(\.value) == [.number(JSONNumber(1)), .number(JSONNumber(lexeme: "2.50")!)])
    #expect(inner[0].value.value == .string("xé😀//no comment"))
    #expect(inner[0].value.position == SourcePosition(line: 4, column: 14))
  }

  @Test(arguments: [
    ("", "1:1: the file ends where a value is expected"), ("{\"a\": 1", "1:1: this '{' has no '}'"),
    ("{\"a\" 1}", "1:6: a: ':' is missing after the key"),
    ("{\n  a: 1}", "2:3: a key in double quotes is expected here, not 'a'"),
    ("{\"a\": 'x'}", "1:7: a: strings are written in double quotes"),
    ("{\"a\": yes}", "1:7: a: this is not a value; strings are written in double quotes"),
    ("{\"a\": 01}", "1:7: a: this is not a number as JSON writes it, for example 15 or 0.5"),
    ("{\"a\": \"x\n\"}", "1:7: a: this string has no closing quote on its line"),
    ("{\"a\": \"\\q\"}", "1:8: a: unknown escape; a backslash itself is written \\\\"),
    ("{\"a\": \"\\u12\"}", "1:8: a: \\u needs four hex digits"),
    ("{\"a\": \"\\ud800\"}", "1:8: a: half of a surrogate pair stands alone"),
    ("{\"a\": \"\t\"}", "1:8: a: control characters are written as escapes, a tab as \\t"),
    ("{} x", "1:4: unexpected 'x' after the end of the configuration; remove it"),
    ("/* x", "1:1: this comment has no end; write */"), ("{\"a\": }", "1:7: a: unexpected '}'; a value is expected"),
    ("[1 2]", "1:4: ',' or ']' is expected here, not '2'"), ("[,]", "1:2: 0: unexpected ','; a value is expected"),
    ("{\"a\": [\"é\" @]}", "1:12: a: ',' or ']' is expected here, not '@'"),
  ])
  func saysWhereAndWhat(text: String, problem: String) {
    let (node, problems) = ConfigurationParser.parse(text)
    #expect(node == nil)
    #expect(problems.map(\.description) == [problem])
  }

  @Test func goesOnAfterDuplicateKeysAndMissingCommas() {
    let (node, problems) = ConfigurationParser.parse("{\"a\": 1\n \"b\": {\"c\": 1, \"c\": 2}\n \"a\": 3}")
    #expect(node != nil)
    #expect(
      problems.map(\.description) == [
        "1:8: ',' is missing here", "2:16: b.c: this key is here twice, first on line 2; keep one",
        "2:23: ',' is missing here", "3:2: a: this key is here twice, first on line 1; keep one",
      ])
  }

  @Test func refusesDeepNesting() {
    let (node, problems) = ConfigurationParser.parse(String(repeating: "[", count: 100_000))
    #expect(node == nil)
    #expect(problems.first?.message == "nested deeper than 64 levels")
  }

  /// Whatever is cut off or altered, reading ends and every problem has a place in the text.
  @Test func survivesDamage() {
    let text = #"{"a": [1, 2.5, {"b": "x\n"}], /* c */ "d": null, // e"# + "\n\"f\": true,}"
    let scalars = Array(text.unicodeScalars)
    for cut in 0...scalars.count {
      var prefix = String.UnicodeScalarView()
      prefix.append(contentsOf: scalars[0..<cut])
      let (node, problems) = ConfigurationParser.parse(String(prefix))
      #expect(node != nil || !problems.isEmpty)
      for insert in ["\"", "{", "]", "\\", "*/", "\u{0}"] {
        var damaged = prefix
        damaged.append(contentsOf: insert.unicodeScalars)
        damaged.append(contentsOf: scalars[cut...])
        let (node, problems) = ConfigurationParser.parse(String(damaged))
        #expect(node != nil || !problems.isEmpty)
        #expect(problems.compactMap(\.position).count == problems.count)
        #expect(problems.compactMap(\.position).allSatisfy { (1...3).contains($0.line) && $0.column >= 1 })
      }
    }
  }
}
