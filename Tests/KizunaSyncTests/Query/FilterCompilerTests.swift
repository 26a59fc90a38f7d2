import HostKit
import Testing

@testable import KizunaSync

/// Which filters SQLite decides by itself, and that it finds rows by their key.
@Suite struct FilterCompilerTests {
  static let columns: [(String, ColumnKind?)] = [
    ("id", .text), ("t", .text), ("n", .number), ("b", .boolean), ("j", .json), ("p", .numeric), ("u", nil),
  ]
  let layout = TableLayout(
    name: "we\"ird", config: .init(), isManaged: true,
    columns: columns.enumerated().map { index, column in
      .init(
        name: column.0, slot: index, kind: column.1, isFirm: true, isLate: false, isKey: column.0 == "id",
        isLocalOnly: false)
    })

  func condition(_ predicate: Predicate) -> FilterCompiler.Condition {
    FilterCompiler(layout: layout).condition(predicate)
  }

  @Test(
    arguments: [
      (.compare("id", .eq, "x"), true), (.compare("n", .eq, 1), true), (.compare("u", .neq, "a"), true),
      (.compare("n", .lt, 5), true), (.compare("t", .lt, "x"), false), (.compare("b", .eq, true), true),
      (.compare("j", .eq, 1), false), (.compare("p", .eq, 1), false), (.isValue("j", nil), true),
      (.isValue("b", true), true), (.isIn("id", ["a", "b"]), true), (.isDistinct("t", from: nil), true),
      (.compare("missing", .eq, 1), true), (.like("t", pattern: "a%", ignoringCase: false), false),
      (.and([.compare("n", .eq, 1), .isValue("t", nil)]), true),
      (.and([.compare("n", .eq, 1), .search("x", columns: nil)]), false),
      (.not(.compare("n", .eq, 1)), true), (.not(.like("t", pattern: "%", ignoringCase: false)), false),
    ] as [(Predicate, Bool)])
  func whatIsExact(predicate: Predicate, isExact: Bool) {
    #expect(condition(predicate).isExact == isExact)
  }

  @Test func valuesAreBoundAndNamesAreQuoted() {
    let hostile = "'; DROP TABLE notes; --"
    let condition = condition(.and([.compare("t", .eq, .string(hostile)), .isIn("t", [.string(hostile)])]))
    #expect(!condition.sql.contains("DROP"))
    #expect(condition.arguments == [.text(hostile), .text(hostile)])
    // A column that is not one of the table's never reaches SQL.
    let unknown = self.condition(.compare("\"; DROP TABLE notes", .eq, 1))
    #expect(unknown.sql == "0")
  }

  @Test func aNumberIsBoundAsTheCellThatHoldsIt() {
    func bound(_ lexeme: String) -> [SQLiteValue] {
      condition(.compare("n", .eq, .number(JSONNumber(lexeme: lexeme)!))).arguments
    }
    #expect(bound("1") == [.integer(1)])
    #expect(bound("1.0") == [.integer(1)])
    #expect(bound("10e-1") == [.integer(1)])
    #expect(bound("0.1") == [.real(0.1)])
    #expect(bound("9223372036854775807") == [.integer(.max)])
    #expect(bound("0.10000000000000000001") == [])
  }

  @Test func notInAListWithNullIsNeverTrue() {
    #expect(condition(.not(.isIn("n", [1, nil]))) == .never)
    #expect(condition(.not(.isIn("n", []))) == .always)
  }

  @Test func manyPartsDoNotOverwhelmSQLite() {
    let many = Predicate.or((0..<2000).map { .compare("n", .eq, .int($0)) })
    #expect(!condition(many).isExact)
    let values = Predicate.isIn("n", (0..<20_000).map { .int($0) })
    #expect(!condition(values).isExact)
  }

  @Test func aLookUpByKeyUsesTheIndex() throws {
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    try database.execute("CREATE TABLE \"we\"\"ird\"(id NOT NULL PRIMARY KEY, t, n, b, j, p, u)")
    let found = condition(.and([.compare("id", .eq, "x")]))
    var plan = ""
    try database.forEachHead(
      ofOnce: "EXPLAIN QUERY PLAN SELECT * FROM \(layout.quoted) WHERE \(found.sql)", found.arguments
    ) { statement in
      plan += statement.string(3)
      return true
    }
    #expect(plan.contains("USING INDEX"))
    database.close()
  }
}
