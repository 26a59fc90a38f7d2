import HostKit

/// Which texts of which columns are numbers: those whose digits SQLite would not give back stand as text.
struct NumberTexts {
  /// Every text that is a number is meant as one.
  var numeric: Set<String> = []
  /// Columns of numbers that nobody declared. Only what SQLite cannot keep as a number is one: `12.50`, but not `12`, which
  /// is somebody's text.
  var undeclared: Set<String> = []

  /// The number a text stands for; any other value as it is.
  func number(_ value: JSONValue, in column: String) -> JSONValue {
    guard case .string(let text) = value, let number = JSONNumber(lexeme: text) else { return value }
    if numeric.contains(column) { return .number(number) }
    guard undeclared.contains(column), case .text = CellCodec.encode(number, kind: .number) else { return value }
    return .number(number)
  }
}

extension NumberTexts: ExpressibleByArrayLiteral {
  init(arrayLiteral elements: String...) {
    numeric = Set(elements)
  }
}

extension TableLayout {
  /// The same with the columns of numbers that hold digits as text declared as such, so that they compare as numbers, and
  /// which columns those are.
  func tellingNumberTexts(of plan: QueryPlan, in database: Database) throws -> (layout: TableLayout, texts: NumberTexts)
  {
    var texts = NumberTexts(numeric: Set(columns.filter { $0.kind == .numeric }.map(\.name)))
    let asked = Set(plan.orders.map(\.column)).union(plan.filters.flatMap(\.columns))
    for column in columns where column.kind == .number && !column.isKey && asked.contains(column.name) {
      let name = SQL.name(column.name)
      if try database.exists("SELECT 1 FROM \(quoted) WHERE \(name) >= '' AND \(name) < x'' LIMIT 1") {
        texts.undeclared.insert(column.name)
      }
    }
    guard !texts.undeclared.isEmpty else { return (self, texts) }
    let columns = columns.map { column in
      var column = column
      if texts.undeclared.contains(column.name) { column.kind = .numeric }
      return column
    }
    let layout = TableLayout(
      name: name, config: config, isManaged: isManaged, hasAppTriggers: hasAppTriggers, columns: columns)
    return (layout, texts)
  }
}
