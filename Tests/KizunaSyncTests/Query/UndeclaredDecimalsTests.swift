import HostKit
import Testing

@testable import KizunaSync

/// Numbers whose digits SQLite would not give back stand as text; nobody declared them, and they compare as numbers all
/// the same.
@Suite struct UndeclaredDecimalsTests {
  private func fixture(index: Bool) throws -> ReplicaFixture {
    let fixture = try ReplicaFixture(["notes": KizunaSyncTableConfig()])
    let prices = ["a": "12.50", "b": "3", "c": "2.50", "d": "7", "e": "100.00", "f": "12345678901234567890.1"]
    let rows = try prices.sorted { $0.key < $1.key }.map {
      (
        pk: $0.key,
        row: try JSONValue(parsing: #"{"id": "\#($0.key)", "price": \#($0.value), "label": "\#($0.value)"}"#)
      )
    }
    try fixture.pull(
      rows + [(pk: "g", row: ["id": "g", "price": nil, "label": nil])], cursor: "1", table: "notes")
    if index { try fixture.sql("CREATE INDEX by_price ON notes(price)") }
    return fixture
  }

  private func keys(_ fixture: ReplicaFixture, _ plan: QueryPlan) throws -> String {
    let layout = try fixture.replica.layout("notes")
    return try QueryRunner(database: fixture.database, layout: layout).matches(plan).map(\.pk).joined()
  }

  static let filters: [(Predicate, String)] = [
    (.compare("price", .gt, 5), "adef"), (.compare("price", .lt, 5), "bc"),
    (.compare("price", .gte, .number(JSONNumber(12.5)!)), "aef"), (.compare("price", .lte, 3), "bc"),
    (.compare("price", .eq, .number(JSONNumber(12.5)!)), "a"), (.compare("price", .eq, 100), "e"),
    (.compare("price", .eq, "12.50"), "a"), (.compare("price", .neq, 100), "abcdf"),
    (.not(.compare("price", .gt, 5)), "bc"), (.isIn("price", [.number(JSONNumber(2.5)!), 7, 100]), "cde"),
    (.isDistinct("price", from: 100), "abcdfg"),
    // Text stays text.
    (.compare("label", .gt, "5"), "d"), (.compare("label", .eq, "12.50"), "a"), (.compare("label", .eq, "12.5"), ""),
  ]

  @Test(arguments: filters, [true, false])
  func filtersCompareThemAsNumbers(filter: (Predicate, String), index: Bool) throws {
    let fixture = try fixture(index: index)
    let plan = QueryPlan(filters: [filter.0])
    #expect(try keys(fixture, plan) == filter.1)
    let layout = try fixture.replica.layout("notes")
    #expect(try QueryRunner(database: fixture.database, layout: layout).count(plan) == filter.1.count)
  }

  @Test(arguments: [(true, "cbdaefg"), (false, "gfeadbc")], [true, false])
  func ordersToo(order: (ascending: Bool, keys: String), index: Bool) throws {
    let plan = QueryPlan(orders: [.init(column: "price", ascending: order.ascending, nullsFirst: nil)])
    #expect(try keys(fixture(index: index), plan) == order.keys)
  }

  /// A column that turns out to hold JSON keeps the numbers it had.
  @Test func theyStayNumbersWhenTheColumnTurnsOutToBeJSON() throws {
    let fixture = try fixture(index: false)
    try fixture.pull([("h", ["id": "h", "price": ["a": 1], "label": "x"])], cursor: "2", table: "notes")
    #expect(try fixture.replica.layout("notes")["price"]?.kind == .json)
    let rows = try fixture.rows("notes")
    #expect(rows["a"]?["price"] == .number(try #require(JSONNumber(lexeme: "12.50"))))
    #expect(rows["f"]?["price"] == .number(try #require(JSONNumber(lexeme: "12345678901234567890.1"))))
    #expect(rows["b"]?["price"] == 3)
    #expect(rows["e"]?["label"] == "100.00")
  }
}
