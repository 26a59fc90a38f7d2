import HostKit

/// Turns filters into SQL over the replica's real columns.
///
/// SQL's own three-valued logic is not relied on: negations are pushed down to the leaves, and each leaf asks "is it
/// certainly true" or "is it certainly false". What SQLite cannot say exactly becomes a condition that lets too much
/// through (`isExact` false), and the rows are decided by `RowEvaluator`. Values are bound, names quoted.
struct FilterCompiler {
  struct Condition: Equatable {
    var sql: String
    var arguments: [SQLiteValue] = []
    /// The condition is true for the rows of the filter and for no others. Otherwise it is true for those and some more.
    var isExact = true
    /// An index on a column of it can narrow the rows to a range.
    var isRange = false

    static let never = Condition(sql: "0")
    static let always = Condition(sql: "1")
    /// Nothing is known: look at every row.
    static let undecided = Condition(sql: "1", isExact: false)
  }

  /// SQLite refuses expressions deeper than 1,000 and more than 32,766 arguments.
  private static let mostParts = 300
  private static let mostValues = 8000

  let layout: TableLayout

  /// The rows for which the filter is true.
  func condition(_ predicate: Predicate) -> Condition {
    compile(predicate, wanted: true)
  }

  private func compile(_ predicate: Predicate, wanted: Bool) -> Condition {
    switch predicate {
    case .not(let part): return compile(part, wanted: !wanted)
    case .and(let parts): return join(parts, with: wanted ? "AND" : "OR", wanted: wanted)
    case .or(let parts): return join(parts, with: wanted ? "OR" : "AND", wanted: wanted)
    case .search, .like, .regex, .textSearch, .contains, .containedBy, .overlaps: return Condition.undecided
    case .compare(let column, let comparison, let value):
      guard let cell = layout[column] else { return constant(predicate, wanted) }
      return compare(cell, comparison, value, wanted)
    case .isValue(let column, let flag):
      guard let cell = layout[column] else { return constant(predicate, wanted) }
      guard let flag else { return isNull(cell, wanted) }
      let hit = equals(cell, .bool(flag))
      return wanted ? hit : either(isNull(cell, true), negated(hit))
    case .isDistinct(let column, let value):
      guard let cell = layout[column] else { return constant(predicate, wanted) }
      if value.isNull { return isNull(cell, !wanted) }
      let same = equals(cell, value)
      return wanted ? either(isNull(cell, true), negated(same)) : same
    case .isIn(let column, let values):
      guard let cell = layout[column] else { return constant(predicate, wanted) }
      return isIn(cell, values, wanted)
    }
  }

  /// A column the table lacks is absent in every row, so the answer is the same for all.
  private func constant(_ predicate: Predicate, _ wanted: Bool) -> Condition {
    RowEvaluator(wanted ? predicate : .not(predicate)).selects([:]) ? .always : .never
  }

  private func join(_ parts: [Predicate], with word: String, wanted: Bool) -> Condition {
    guard !parts.isEmpty else { return word == "AND" ? .always : .never }
    guard parts.count <= Self.mostParts else { return .undecided }
    let compiled = parts.map { compile($0, wanted: wanted) }
    let arguments = compiled.flatMap(\.arguments)
    guard arguments.count <= Self.mostValues else { return .undecided }
    return Condition(
      sql: "(" + compiled.map(\.sql).joined(separator: " \(word) ") + ")", arguments: arguments,
      isExact: compiled.allSatisfy(\.isExact),
      isRange: word == "AND" ? compiled.contains(where: \.isRange) : compiled.allSatisfy(\.isRange))
  }

  // MARK: Leaves

  private func isNull(_ column: TableLayout.Column, _ wanted: Bool) -> Condition {
    Condition(sql: "\(SQL.name(column.name)) IS \(wanted ? "" : "NOT ")NULL")
  }

  private func either(_ left: Condition, _ right: Condition) -> Condition {
    // A constant beside it would keep SQLite from the index.
    if left == .never { return right }
    if right == .never { return left }
    return Condition(
      sql: "(\(left.sql) OR \(right.sql))", arguments: left.arguments + right.arguments,
      isExact: left.isExact && right.isExact)
  }

  private func both(_ left: Condition, _ right: Condition) -> Condition {
    Condition(
      sql: "(\(left.sql) AND \(right.sql))", arguments: left.arguments + right.arguments,
      isExact: left.isExact && right.isExact)
  }

  /// Only for conditions that are never NULL where it matters. A superset cannot be negated.
  private func negated(_ condition: Condition) -> Condition {
    condition.isExact
      ? Condition(sql: "NOT (\(condition.sql))", arguments: condition.arguments) : .undecided
  }

  /// Whether the column's cells are what SQLite's own comparison takes them for.
  private func isNative(_ column: TableLayout.Column) -> Bool {
    switch column.kind {
    case .text, .number, nil: true
    case .numeric, .boolean, .json: false
    }
  }

  private func compare(
    _ column: TableLayout.Column, _ comparison: Predicate.Comparison, _ value: JSONValue, _ wanted: Bool
  ) -> Condition {
    if value.isNull { return .never }
    switch comparison {
    case .eq, .neq:
      let same = equals(column, value)
      return (comparison == .eq) == wanted ? same : both(isNull(column, false), negated(same))
    case .lt: return range(column, wanted ? "<" : ">=", value)
    case .lte: return range(column, wanted ? "<=" : ">", value)
    case .gt: return range(column, wanted ? ">" : "<=", value)
    case .gte: return range(column, wanted ? ">=" : "<", value)
    }
  }

  /// Certainly equal to a value that is not null.
  private func equals(_ column: TableLayout.Column, _ value: JSONValue) -> Condition {
    let name = SQL.name(column.name)
    switch (column.kind, value) {
    case (.boolean, .bool(let flag)):
      return Condition(sql: "(\(name) = \(flag ? 1 : 0) AND typeof(\(name)) = 'integer')")
    case _ where !isNative(column): return Condition(sql: "\(name) IS NOT NULL", isExact: false)
    case (_, .string(let text)):
      return Condition(sql: "(\(name) = ? COLLATE BINARY AND typeof(\(name)) = 'text')", arguments: [.text(text)])
    case (_, .number(let number)):
      guard let native = Self.native(number) else { return .never }
      return Condition(sql: "(\(name) = ? AND typeof(\(name)) IN ('integer', 'real'))", arguments: [native])
    default: return .never
    }
  }

  /// The cell that a number column holds for a number; nil when SQLite has no cell of exactly that value.
  private static func native(_ number: JSONNumber) -> SQLiteValue? {
    if let integer = number.int64 { return .integer(integer) }
    let value = DecimalValue(number)
    let double = number.double
    if let integer = Int64(exactly: double), DecimalValue(JSONNumber(integer)) == value { return .integer(integer) }
    guard let shortest = JSONNumber(double), DecimalValue(shortest) == value else { return nil }
    return .real(double)
  }

  /// SQLite puts numbers before texts and texts before blobs, and an index likewise; here a number and a text compare as
  /// texts. So the two sides of `''` are asked for separately, each a range an index can find. `+` keeps a declared type
  /// from turning the operand into a number, and the index away.
  private func range(_ column: TableLayout.Column, _ sign: String, _ value: JSONValue) -> Condition {
    let name = SQL.name(column.name)
    let undecided = Condition(sql: "\(name) IS NOT NULL", isExact: false)
    guard isNative(column) else { return undecided }
    switch value {
    case .number(let number):
      guard let native = Self.native(number) else { return undecided }
      return Condition(
        sql: "((\(name) \(sign) ? AND \(name) < '') OR (\(name) >= '' AND +\(name) \(sign) ? COLLATE BINARY))",
        arguments: [native, .text(number.lexeme)], isRange: true)
    case .string(let text) where Self.looksNumeric(text):
      return Condition(
        sql: "(\(name) < '' OR (\(name) >= '' AND +\(name) \(sign) ? COLLATE BINARY) OR \(name) >= x'')",
        arguments: [.text(text)], isExact: false)
    case .string(let text):
      // How a number or a blob reads as text is not left to SQLite.
      let others = sign.hasPrefix(">") ? "\(name) < ''" : "\(name) >= x''"
      return Condition(
        sql: "(\(name) \(sign) ? COLLATE BINARY OR \(others))", arguments: [.text(text)], isExact: false,
        isRange: true)
    default: return undecided
    }
  }

  /// Whether a column declared as a number would take this text for one (SQLite's documentation on datatypes, §3).
  private static func looksNumeric(_ text: String) -> Bool {
    text.utf8.contains { (0x30...0x39).contains($0) }
      && text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE \t\n\u{B}\u{C}\r".utf8.contains($0) }
      && Double(TextMatch.trimmed(text)) != nil
  }

  private func isIn(_ column: TableLayout.Column, _ values: [JSONValue], _ wanted: Bool) -> Condition {
    if values.isEmpty { return wanted ? .never : .always }
    let present = values.filter { !$0.isNull }
    if !wanted, present.count < values.count { return .never }
    if present.isEmpty { return .never }
    let hit = isAmong(column, present)
    return wanted ? hit : both(isNull(column, false), negated(hit))
  }

  private func isAmong(_ column: TableLayout.Column, _ values: [JSONValue]) -> Condition {
    let name = SQL.name(column.name)
    guard isNative(column), values.count <= Self.mostValues else {
      return Condition(sql: "\(name) IS NOT NULL", isExact: false)
    }
    let texts = values.compactMap(\.stringValue).map(SQLiteValue.text)
    let numbers = values.compactMap(\.numberValue).compactMap(Self.native)
    func among(_ cells: [SQLiteValue], _ types: String) -> Condition {
      cells.isEmpty
        ? .never
        : Condition(
          sql: "(\(name) COLLATE BINARY IN (\(SQL.parameters(cells.count))) AND typeof(\(name)) IN (\(types)))",
          arguments: cells)
    }
    return either(among(texts, "'text'"), among(numbers, "'integer', 'real'"))
  }
}
