import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// What SQLite says it does for a query: an index on a column is used for equality, lists, ranges and order, on a table
/// the replica made and the app put its indexes on.
@Suite struct QueryIndexTests {
  private static let columns: [(String, ColumnKind?)] = [
    ("id", .text), ("t", .text), ("n", .number), ("u", nil), ("b", .boolean), ("plain", .text),
  ]

  private func plan(_ plan: QueryPlan) throws -> [String] {
    let layout = TableLayout(
      name: "todos", config: .init(), isManaged: true,
      columns: Self.columns.enumerated().map { index, column in
        .init(
          name: column.0, slot: index, kind: column.1, isFirm: true, isLate: false, isKey: column.0 == "id",
          isLocalOnly: false)
      })
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    defer { database.close() }
    try database.execute(
      """
      CREATE TABLE todos(id NOT NULL, t, n, u, b, plain, PRIMARY KEY (id));
      CREATE INDEX by_t ON todos(t); CREATE INDEX by_n ON todos(n); CREATE INDEX by_u ON todos(u);
      CREATE INDEX by_b ON todos(b);
      """)
    let statement = try QueryRunner(database: database, layout: layout).statement(plan)
    return try database.map("EXPLAIN QUERY PLAN " + statement.sql, statement.arguments) { $0.string(3) }
  }

  private static let searches: [(Predicate, String)] = [
    (.compare("id", .eq, "x"), "sqlite_autoindex_todos_1 (id=?)"),
    (.isIn("id", ["x", "y"]), "sqlite_autoindex_todos_1 (id=?)"),
    (.compare("t", .eq, "x"), "by_t (t=?)"), (.compare("n", .eq, 5), "by_n (n=?)"),
    (.compare("b", .eq, true), "by_b (b=?)"), (.isValue("b", false), "by_b (b=?)"),
    (.compare("u", .eq, "x"), "by_u (u=?)"), (.isIn("n", [1, 2]), "by_n (n=?)"),
    (.isValue("t", nil), "by_t (t=?)"),
    (.compare("n", .gt, 5), "by_n (n>? AND n<?)"), (.compare("n", .gte, 5), "by_n (n>? AND n<?)"),
    (.compare("n", .lt, 5), "by_n (n<?)"), (.compare("n", .lte, .number(JSONNumber(1.5)!)), "by_n (n<?)"),
    (.compare("t", .gt, "m"), "by_t (t>?)"), (.compare("t", .gte, "2026-01-01"), "by_t (t>?)"),
    (.compare("t", .lt, "m"), "by_t (t<?)"), (.compare("t", .lte, "m"), "by_t (t<?)"),
    (.not(.compare("n", .lte, 5)), "by_n (n>? AND n<?)"),
    (.and([.compare("plain", .gt, "a"), .compare("n", .gt, 5)]), "by_n (n>? AND n<?)"),
    (.and([.like("plain", pattern: "%a%", ignoringCase: true), .compare("t", .lt, "m")]), "by_t (t<?)"),
    (.or([.compare("n", .eq, 5), .compare("t", .eq, "m")]), "by_n (n=?)"),
  ]

  @Test(arguments: searches)
  func aFilterSearchesTheIndex(filter: Predicate, search: String) throws {
    let steps = try plan(QueryPlan(filters: [filter]))
    #expect(steps.contains("SEARCH todos USING INDEX \(search)"), "\(steps)")
    #expect(!steps.contains { $0.hasPrefix("SCAN") }, "\(steps)")
  }

  @Test(arguments: [true, false], ["t", "n", "u"])
  func anOrderWalksTheIndex(ascending: Bool, column: String) throws {
    let order = QueryPlan.Order(column: column, ascending: ascending, nullsFirst: nil)
    // Only rows that tie are sorted, by their keys.
    let sorted = ["SCAN todos USING INDEX by_\(column)", "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"]
    #expect(try plan(QueryPlan(orders: [order])) == sorted)
    #expect(try plan(QueryPlan(orders: [order], limit: 10)) == sorted)
    let unindexed = QueryPlan.Order(column: "plain", ascending: ascending, nullsFirst: nil)
    #expect(try plan(QueryPlan(orders: [unindexed])) == ["SCAN todos", "USE TEMP B-TREE FOR ORDER BY"])
  }

  @Test func rowsWithoutOrderWalkTheKey() throws {
    #expect(try plan(QueryPlan()) == ["SCAN todos USING INDEX sqlite_autoindex_todos_1"])
    let one = QueryPlan(filters: [.compare("plain", .gt, "a")], limit: 1)
    #expect(try plan(one) == ["SCAN todos USING INDEX sqlite_autoindex_todos_1"])
  }
}
