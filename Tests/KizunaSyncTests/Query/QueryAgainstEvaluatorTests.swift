import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Whatever SQLite is asked to decide, the answer is the evaluator's: generated plans over tables that mix every kind.
@Suite struct QueryAgainstEvaluatorTests {
  static let columns = ["t", "n", "b", "j", "p", "m", "missing", "id"]

  static func value(_ random: inout SeededRandom) -> JSONValue {
    let all: [JSONValue] = [
      nil, true, false, 0, 1, 2, 10, -3, .number(JSONNumber(lexeme: "1.0")!), .number(JSONNumber(lexeme: "1.5")!),
      .int(9_007_199_254_740_993), .number(JSONNumber(lexeme: "9007199254740992.0")!),
      .number(JSONNumber(lexeme: "12345678901234567890")!), "", "a", "A", "ab", "b%", "1", "10", "é", "[1]", "null",
      [1, "a"], [], ["k": 1], ["k": [1, nil]],
    ]
    return all.randomElement(using: &random)!
  }

  /// A value the column's kind takes without turning the column into JSON.
  static func cell(_ column: String, _ random: inout SeededRandom) -> JSONValue? {
    if Int.random(in: 0..<6, using: &random) == 0 { return nil }
    if Int.random(in: 0..<6, using: &random) == 0 { return .null }
    return switch column {
    case "t": ["", "a", "A", "ab", "b%", "1", "10", "é", "zz"].randomElement(using: &random)!
    case "n":
      [0, 1, 2, 10, -3, .int(9_007_199_254_740_993), .number(JSONNumber(lexeme: "1.5")!)].randomElement(
        using: &random)!
    case "b": .bool(.random(using: &random))
    case "p": .string(["0.10", "1", "1.0", "12345678901234567890.5", "-3"].randomElement(using: &random)!)
    case "m": [1, 10, "1", "a", 2, "10", .number(JSONNumber(lexeme: "0.25")!)].randomElement(using: &random)!
    default: value(&random)
    }
  }

  static func predicate(_ depth: Int, _ random: inout SeededRandom) -> Predicate {
    let column = columns.randomElement(using: &random)!
    if depth > 0, Bool.random(using: &random) {
      let parts = (0..<Int.random(in: 0...3, using: &random)).map { _ in predicate(depth - 1, &random) }
      switch Int.random(in: 0..<3, using: &random) {
      case 0: return .and(parts)
      case 1: return .or(parts)
      default: return .not(predicate(depth - 1, &random))
      }
    }
    switch Int.random(in: 0..<11, using: &random) {
    case 0, 1, 2, 3:
      return .compare(column, Predicate.Comparison.allCases.randomElement(using: &random)!, value(&random))
    case 4:
      // Null among the values makes "not in" unknown, so it comes often.
      let values = (0..<Int.random(in: 0...3, using: &random)).map { _ in
        Int.random(in: 0..<3, using: &random) == 0 ? .null : value(&random)
      }
      return Bool.random(using: &random) ? .isIn(column, values) : .not(.isIn(column, values))
    case 5: return .isValue(column, [nil, true, false].randomElement(using: &random)!)
    case 6: return .isDistinct(column, from: value(&random))
    case 7: return .like(column, pattern: ["%a%", "_", "1%", "%"].randomElement(using: &random)!, ignoringCase: true)
    case 8: return .contains(column, value(&random))
    case 9: return .search(["a", "1", " "].randomElement(using: &random)!, columns: nil)
    default: return .textSearch(column, "a", .plain)
    }
  }

  static func orders(_ random: inout SeededRandom) -> [QueryPlan.Order] {
    (0..<Int.random(in: 0...2, using: &random)).map { _ in
      .init(
        column: columns.randomElement(using: &random)!, ascending: .random(using: &random),
        nullsFirst: [nil, true, false].randomElement(using: &random)!)
    }
  }

  func check(
    key: [String], seed: UInt64, path: String? = nil, id: (Int) -> [String: JSONValue]
  ) async throws {
    var random = SeededRandom(seed)
    let client = KizunaSyncClient()
    try await client.create(
      .init(
        tables: [
          "t": .init(
            key: key,
            columns: ["t": .text, "n": .number, "b": .boolean, "j": .json, "p": .numeric])
        ], databasePath: path))
    for index in 0..<40 {
      var row = id(index)
      for column in ["t", "n", "b", "j", "p", "m"] { row[column] = Self.cell(column, &random) }
      // Text and numbers of one column come in any order.
      try await client.apply(LocalWrite(table: "t", op: .insert, columns: row))
    }
    let everything = try await client.answer(QueryPlan(), table: "t").rows
    #expect(everything.count == 40)
    var selective = 0
    for _ in 0..<150 {
      let filter = Self.predicate(3, &random)
      let orders = Self.orders(&random)
      let limit = [nil, 0, 3].randomElement(using: &random)!
      let offset = [nil, 2].randomElement(using: &random)!
      let evaluator = RowEvaluator(filter, orders: orders, numberTexts: ["p"])
      let matching = everything.filter(evaluator.selects)
      let expected = evaluator.sorted(matching).dropFirst(offset ?? 0).prefix(limit ?? .max)
      let answer = try await client.answer(
        QueryPlan(filters: [filter], orders: orders, limit: limit, offset: offset, count: true), table: "t")
      #expect(answer.rows == Array(expected), "\(filter) \(orders)")
      #expect(answer.count == matching.count, "\(filter)")
      if !matching.isEmpty, matching.count < 40 { selective += 1 }
    }
    #expect(selective > 30)
    await client.dispose()
  }

  @Test(arguments: UInt64(1)...6)
  func uuidKeys(seed: UInt64) async throws {
    try await check(key: ["id"], seed: seed) { _ in [:] }
  }

  @Test(arguments: UInt64(7)...9)
  func integerKeys(seed: UInt64) async throws {
    try await check(key: ["id"], seed: seed) { ["id": .int($0 * 7 - 20)] }
  }

  /// SQLite turns values into the declared type, also operands of comparisons.
  @Test(arguments: UInt64(13)...18)
  func tablesOfTheApp(seed: UInt64) async throws {
    let types = [["TEXT", "INTEGER", "NUMERIC"], ["VARCHAR(9)", "REAL", "INTEGER"], ["NUMERIC", "TEXT", "TEXT"]][
      Int(seed % 3)]
    try await withScratchFolder { folder in
      let sql = try PlainDatabase(folder + "/a.db")
      try sql.run(
        """
        CREATE TABLE t(id TEXT NOT NULL PRIMARY KEY, t \(types[0]), n \(types[1]), b BOOLEAN, j JSON, p, m \(types[2]));
        CREATE INDEX t_t ON t(t); CREATE INDEX t_n ON t(n); CREATE INDEX t_m ON t(m);
        """)
      sql.close()
      try await check(key: ["id"], seed: seed, path: folder + "/a.db") { _ in [:] }
    }
  }

  @Test(arguments: UInt64(10)...12)
  func compositeKeys(seed: UInt64) async throws {
    try await check(key: ["id", "part"], seed: seed) { ["id": .string("a,\($0 / 3)\""), "part": .int($0)] }
  }
}
