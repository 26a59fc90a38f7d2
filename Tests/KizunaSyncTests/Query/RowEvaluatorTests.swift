import HostKit
import Testing

@testable import KizunaSync

/// What every operator means (Swift surface §6).
@Suite struct RowEvaluatorTests {
  static let row: [String: JSONValue] = [
    "n": 5, "big": .int(9_007_199_254_740_993), "real": .number(JSONNumber(lexeme: "1.0")!), "text": "Hello World",
    "flag": true, "none": nil, "tags": ["a", "b", nil], "object": ["k": 0, "v": ["x": false]],
    "json": "[1, 2]", "price": "0.10", "accent": "caf\u{E9}",
  ]

  func truth(_ json: JSONValue) throws -> Bool? {
    let predicate = try QueryPlanParser.predicate(json.objectValue!)
    let yes = RowEvaluator(predicate, numberTexts: ["price"]).selects(Self.row)
    let no = RowEvaluator(.not(predicate), numberTexts: ["price"]).selects(Self.row)
    #expect(!(yes && no))
    return yes ? true : no ? false : nil
  }

  func node(_ kind: String, _ column: String, _ value: JSONValue) -> JSONValue {
    ["kind": .string(kind), "column": .string(column), "value": value]
  }

  @Test(
    arguments: [
      // Numbers by value, text by bytes, everything else by structure.
      ("eq", "n", 5, true), ("eq", "n", "5", false), ("eq", "n", 6, false), ("eq", "flag", 1, false),
      ("eq", "flag", true, true), ("eq", "text", "hello world", false), ("eq", "accent", "cafe\u{301}", false),
      ("eq", "big", .int(9_007_199_254_740_992), false), ("eq", "real", 1, true), ("neq", "n", 6, true),
      ("eq", "object", ["v": ["x": false], "k": 0], true), ("eq", "object", ["v": ["x": 0], "k": 0], false),
      // A null or absent cell, or a null operand, is unknown.
      ("eq", "none", 1, nil), ("neq", "none", 1, nil), ("eq", "missing", 1, nil), ("eq", "n", nil, nil),
      ("gt", "none", 1, nil), ("contains", "none", "a", nil), ("overlaps", "tags", nil, nil),
      // Ranges.
      ("gt", "n", 4, true), ("gte", "n", 5, true), ("lt", "n", 5, false), ("lte", "n", 5, true),
      ("lt", "big", .int(9_007_199_254_740_994), true), ("gt", "text", "Hello", true), ("lt", "n", "6", true),
      ("gt", "n", "10", true), ("gt", "flag", "false", true),
      // Exact decimals kept as text compare as numbers.
      ("eq", "price", .number(JSONNumber(lexeme: "0.1")!), true), ("lt", "price", 9, true),
      ("eq", "price", "0.1", true),
      // Never unknown.
      ("is", "none", nil, true), ("is", "missing", nil, true), ("is", "n", nil, false), ("is", "flag", true, true),
      ("is", "flag", false, false), ("is", "none", true, false), ("is", "n", true, false),
      ("isDistinct", "none", nil, false), ("isDistinct", "none", 1, true), ("isDistinct", "n", 5, false),
      ("isDistinct", "n", nil, true),
      // Containment.
      ("contains", "tags", ["b"], true), ("contains", "tags", ["b", "c"], false), ("contains", "tags", [], true),
      ("containedBy", "tags", ["a", "b", "c", nil], true), ("containedBy", "tags", ["a"], false),
      ("contains", "object", ["k": 0], true), ("contains", "object", ["k": false], false), ("contains", "n", 5, true),
      ("contains", "json", [2], true), ("contains", "tags", "[\"a\"]", true), ("contains", "tags", "a", false),
      ("overlaps", "tags", ["z", "b"], true), ("overlaps", "tags", ["z"], false), ("overlaps", "n", [5], false),
    ] as [(String, String, JSONValue, Bool?)])
  func operators(kind: String, column: String, value: JSONValue, expected: Bool?) throws {
    #expect(try truth(node(kind, column, value)) == expected)
  }

  @Test(
    arguments: [
      ("like", "text", "Hello%", true), ("like", "text", "hello%", false), ("ilike", "text", "hello*", true),
      ("like", "text", "Hello", false), ("like", "text", "_ello World", true), ("like", "text", "%o%o%", true),
      ("like", "text", "%o%o%o%", false), ("like", "text", "Hello\\_World", false), ("like", "n", "5", true),
      ("like", "tags", "%", false), ("like", "none", "%", nil), ("ilike", "accent", "CAF\u{C9}", true),
      ("like", "accent", "caf_", true), ("like", "text", "", false),
      ("regexMatch", "text", "^H.*d$", true), ("regexMatch", "text", "world", false),
      ("regexIMatch", "text", "world", true),
      ("regexMatch", "tags", ".*", false), ("regexMatch", "none", ".*", nil),
    ] as [(String, String, String, Bool?)])
  func patterns(kind: String, column: String, pattern: String, expected: Bool?) throws {
    #expect(try truth(["kind": .string(kind), "column": .string(column), "pattern": .string(pattern)]) == expected)
  }

  @Test func membership() throws {
    func isIn(_ column: String, _ values: [JSONValue]) throws -> Bool? {
      try truth(["kind": "in", "column": .string(column), "values": .array(values)])
    }
    #expect(try isIn("n", [4, 5]) == true)
    #expect(try isIn("n", [4]) == false)
    #expect(try isIn("n", [4, nil]) == nil)
    #expect(try isIn("n", [5, nil]) == true)
    #expect(try isIn("n", []) == false)
    #expect(try isIn("none", []) == false)
    #expect(try isIn("none", [1]) == nil)
  }

  @Test func connectives() throws {
    let yes = node("eq", "n", 5)
    let no = node("eq", "n", 6)
    let unknown = node("eq", "none", 1)
    func all(_ kind: String, _ parts: [JSONValue]) throws -> Bool? {
      try truth(["kind": .string(kind), "filters": .array(parts)])
    }
    #expect(try all("and", []) == true)
    #expect(try all("or", []) == false)
    #expect(try all("and", [yes, unknown]) == nil)
    #expect(try all("and", [no, unknown]) == false)
    #expect(try all("or", [yes, unknown]) == true)
    #expect(try all("or", [no, unknown]) == nil)
    #expect(try truth(["kind": "not", "filter": unknown]) == nil)
    #expect(try truth(["kind": "not", "filter": ["kind": "not", "filter": yes]]) == true)
  }

  @Test(
    arguments: [
      ("WORLD", nil, true), ("  world  ", nil, true), ("", nil, true), ("5", nil, true), ("xyz", nil, false),
      ("true", nil, false), ("world", ["n"], false), ("world", ["n", "text"], true), ("a", ["none"], false),
    ] as [(String, [String]?, Bool)])
  func search(query: String, columns: [String]?, expected: Bool) throws {
    var node: [String: JSONValue] = ["kind": "search", "query": .string(query)]
    node["columns"] = columns.map { .array($0.map(JSONValue.string)) }
    #expect(try truth(.object(node)) == expected)
  }

  @Test(arguments: [
    ("world hello", "plain", true), ("world moon", "plain", false), ("hello world", "phrase", true),
    ("world hello", "phrase", false), ("\"hello world\"", "websearch", true), ("\"world hello\"", "websearch", false),
    ("world \"hello\"", "websearch", true),
  ])
  func textSearch(query: String, type: String, expected: Bool) throws {
    #expect(
      try truth(["kind": "textSearch", "column": "text", "query": .string(query), "type": .string(type)]) == expected)
  }

  @Test(
    arguments: [
      (true, nil, ["2", "9", "10", "a", "null"]), (false, nil, ["null", "a", "10", "9", "2"]),
      (true, true, ["null", "2", "9", "10", "a"]), (false, false, ["a", "10", "9", "2", "null"]),
    ] as [(Bool, Bool?, [String])])
  func order(ascending: Bool, nullsFirst: Bool?, expected: [String]) {
    let rows: [[String: JSONValue]] = [["c": 10], ["c": nil], ["c": "a"], ["c": 2], ["c": 9]]
    let evaluator = RowEvaluator(
      .and([]), orders: [.init(column: "c", ascending: ascending, nullsFirst: nullsFirst)])
    #expect(evaluator.sorted(rows).map { CellOrder.text($0["c"]!) } == expected)
  }

  @Test func rowsThatTieKeepTheirOrder() {
    let rows: [[String: JSONValue]] = (0..<100).map { ["k": .int($0 % 3), "i": .int($0)] }
    let sorted = RowEvaluator(.and([]), orders: [.init(column: "k")]).sorted(rows)
    #expect(sorted.map { $0["i"]!.intValue! } == (0..<100).sorted { ($0 % 3, $0) < ($1 % 3, $1) })
  }
}
