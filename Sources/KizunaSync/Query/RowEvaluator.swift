import HostKit

/// Decides filters and order on decoded rows: the exact meaning of every operator (Swift surface §6).
///
/// SQLite narrows the rows down where it can; what it cannot say exactly is decided here. Made for one query, because
/// compiled patterns are kept.
struct RowEvaluator {
  private let root: Node
  private let orders: [QueryPlan.Order]
  private let numberTexts: NumberTexts

  /// A row by column name; a missing name is an absent cell.
  typealias Row = [String: JSONValue]

  /// - Parameter numberTexts: exact decimals that are kept as text but compare as numbers.
  init(_ filter: Predicate, orders: [QueryPlan.Order] = [], numberTexts: NumberTexts = []) {
    self.orders = orders
    self.numberTexts = numberTexts
    root = Node(filter, numberTexts)
  }

  /// Only true selects; unknown does not.
  func selects(_ row: Row) -> Bool {
    root.truth(of: row, numberTexts) == true
  }

  /// Whether `left` comes first. Rows that tie are left in the order they had.
  func precedes(_ left: Row, _ right: Row) -> Bool {
    for order in orders {
      let one = Node.cell(order.column, of: left, numberTexts)
      let other = Node.cell(order.column, of: right, numberTexts)
      switch (one.isNull, other.isNull) {
      case (true, true): continue
      case (true, false): return order.putsNullsFirst
      case (false, true): return !order.putsNullsFirst
      case (false, false):
        if CellOrder.sortsBefore(one, other) { return order.ascending }
        if CellOrder.sortsBefore(other, one) { return !order.ascending }
      }
    }
    return false
  }

  /// Stable: Swift's sort does not promise it, so ties are broken by position.
  func sorted(_ rows: [Row]) -> [Row] {
    guard !orders.isEmpty else { return rows }
    return rows.enumerated().sorted { left, right in
      if precedes(left.element, right.element) { return true }
      return !precedes(right.element, left.element) && left.offset < right.offset
    }.map(\.element)
  }
}

/// A filter with its patterns compiled. Truth is three-valued: nil is unknown.
private indirect enum Node {
  case compare(String, Predicate.Comparison, JSONValue)
  case like(String, LikePattern)
  case regex(String, Regex<AnyRegexOutput>?)
  case search(String, columns: [String]?)
  case plain(Predicate)
  case and([Node])
  case or([Node])
  case not(Node)

  init(_ predicate: Predicate, _ texts: NumberTexts) {
    switch predicate {
    case .compare(let column, let comparison, let value):
      self = .compare(column, comparison, texts.number(value, in: column))
    case .like(let column, let pattern, let ignoringCase):
      self = .like(column, LikePattern(pattern, ignoringCase: ignoringCase))
    case .regex(let column, let pattern): self = .regex(column, pattern.compiled())
    case .search(let query, let columns):
      self = .search(TextMatch.trimmed(query).lowercased(), columns: columns)
    case .and(let parts): self = .and(parts.map { Node($0, texts) })
    case .or(let parts): self = .or(parts.map { Node($0, texts) })
    case .not(let part): self = .not(Node(part, texts))
    default: self = .plain(predicate)
    }
  }

  static func cell(_ column: String, of row: RowEvaluator.Row, _ texts: NumberTexts) -> JSONValue {
    texts.number(row[column] ?? .null, in: column)
  }

  func truth(of row: RowEvaluator.Row, _ texts: NumberTexts) -> Bool? {
    switch self {
    case .and(let parts): return Self.all(parts) { $0.truth(of: row, texts) }
    case .or(let parts): return Self.all(parts) { $0.truth(of: row, texts).map(!) }.map(!)
    case .not(let part): return part.truth(of: row, texts).map(!)
    case .search(let query, let columns): return Self.search(query, columns, row)
    case .compare(let column, let comparison, let value):
      let cell = Self.cell(column, of: row, texts)
      if cell.isNull || value.isNull { return nil }
      return Self.compare(cell, comparison, value)
    case .like(let column, let pattern):
      return Self.onText(row[column]) { pattern.matches($0) }
    case .regex(let column, let regex):
      return Self.onText(row[column]) { Self.matches(regex, $0) }
    case .plain(let predicate): return Self.truth(predicate, row, texts)
    }
  }

  /// False if any is false, else unknown if any is unknown, else true.
  private static func all(_ parts: [Node], _ truth: (Node) -> Bool?) -> Bool? {
    var result: Bool? = true
    for part in parts {
      switch truth(part) {
      case false?: return false
      case nil: result = nil
      case true?: continue
      }
    }
    return result
  }

  private static func matches(_ regex: Regex<AnyRegexOutput>?, _ text: String) -> Bool {
    guard let regex else { return false }
    return (try? regex.firstMatch(in: text)) != nil
  }

  private static func truth(_ predicate: Predicate, _ row: RowEvaluator.Row, _ texts: NumberTexts) -> Bool? {
    func cell(_ column: String) -> JSONValue { Self.cell(column, of: row, texts) }
    func operand(_ column: String, _ value: JSONValue) -> JSONValue { texts.number(value, in: column) }
    func known(_ column: String, _ value: JSONValue, _ test: (JSONValue, JSONValue) -> Bool) -> Bool? {
      let cell = cell(column)
      return cell.isNull || value.isNull ? nil : test(cell, operand(column, value))
    }
    switch predicate {
    case .isValue(let column, let flag): return flag.map { cell(column) == .bool($0) } ?? cell(column).isNull
    case .isDistinct(let column, let value): return !CellOrder.areEqual(cell(column), operand(column, value))
    case .isIn(let column, let values):
      let cell = cell(column)
      if values.isEmpty { return false }
      if cell.isNull { return nil }
      if values.contains(where: { CellOrder.areEqual(cell, operand(column, $0)) }) { return true }
      return values.contains(where: \.isNull) ? nil : false
    case .contains(let column, let value): return known(column, value) { CellOrder.contains($0, $1) }
    case .containedBy(let column, let value): return known(column, value) { CellOrder.contains($1, $0) }
    case .overlaps(let column, let value): return known(column, value, CellOrder.overlap)
    case .textSearch(let column, let query, let type):
      return onText(row[column]) { TextMatch.search(query, in: $0, type) }
    case .compare, .like, .regex, .search, .and, .or, .not:
      preconditionFailure("compiled into a node of its own")
    }
  }

  private static func compare(_ cell: JSONValue, _ comparison: Predicate.Comparison, _ value: JSONValue) -> Bool {
    switch comparison {
    case .eq: CellOrder.areEqual(cell, value)
    case .neq: !CellOrder.areEqual(cell, value)
    case .lt: CellOrder.precedes(cell, value)
    case .gt: CellOrder.precedes(value, cell)
    case .lte: !CellOrder.precedes(value, cell)
    case .gte: !CellOrder.precedes(cell, value)
    }
  }

  /// Unknown for null; arrays and objects never match.
  private static func onText(_ cell: JSONValue?, _ test: (String) -> Bool) -> Bool? {
    switch cell ?? .null {
    case .null: nil
    case .array, .object: false
    case let scalar: test(CellOrder.text(scalar))
    }
  }

  private static func search(_ query: String, _ columns: [String]?, _ row: RowEvaluator.Row) -> Bool {
    if query.isEmpty { return true }
    func hit(_ cell: JSONValue?) -> Bool {
      switch cell {
      case .string(let text): TextMatch.occurs(query, in: text.lowercased())
      case .number(let number): TextMatch.occurs(query, in: number.lexeme.lowercased())
      default: false
      }
    }
    guard let columns else { return row.values.contains { hit($0) } }
    return columns.contains { hit(row[$0]) }
  }
}
