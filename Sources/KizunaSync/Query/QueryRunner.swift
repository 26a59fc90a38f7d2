import HostKit

/// What a read answers.
struct QueryAnswer: Equatable, Sendable {
  var rows: [RowMap] = []
  /// How many rows pass the filters, when the plan asked.
  var count: Int?
}

/// Runs plans on one table of one connection. Confined to the connection's thread.
struct QueryRunner {
  struct Match {
    var pk: String
    var row: RowMap
  }

  let database: Database
  let layout: TableLayout

  /// - Throws: `LOCAL_CONSTRAINT` when the cardinality is violated, `SQLiteError`.
  func answer(_ plan: QueryPlan) throws -> QueryAnswer {
    try database.snapshot {
      var answer = QueryAnswer()
      if plan.count { answer.count = try count(plan) }
      var plan = plan
      // One row more than allowed is enough to know.
      if plan.cardinality != .many { plan.limit = min(plan.limit ?? 2, 2) }
      let found = try matches(plan)
      try plan.checkCardinality(of: found.count)
      answer.rows = found.map { Self.project($0.row, plan.projection) }
      return answer
    }
  }

  /// The rows of a plan in their order, before the projection.
  func matches(_ plan: QueryPlan) throws -> [Match] {
    let select = try Select(plan, layout, database)
    let offset = plan.offset ?? 0
    let limit = plan.limit ?? .max
    if limit == 0 { return [] }
    var found: [Match] = []
    var skipped = 0
    try scan(select) { match in
      guard select.isOrdered else {
        found.append(match)
        return true
      }
      if skipped < offset {
        skipped += 1
        return true
      }
      found.append(match)
      return found.count < limit
    }
    guard !select.isOrdered else { return found }
    return Array(sorted(found, select).dropFirst(offset).prefix(limit))
  }

  func count(_ plan: QueryPlan) throws -> Int {
    let select = try Select(plan, layout, database)
    if select.condition.isExact {
      let sql = "SELECT count(*) FROM \(layout.quoted) WHERE \(select.condition.sql)"
      var count = 0
      try database.forEachHead(ofOnce: sql, select.condition.arguments) { statement in
        count = statement.int(0)
        return false
      }
      return count
    }
    var count = 0
    try scan(select) { _ in
      count += 1
      return true
    }
    return count
  }

  /// The statement a plan becomes, and its arguments.
  func statement(_ plan: QueryPlan) throws -> (sql: String, arguments: [SQLiteValue]) {
    let select = try Select(plan, layout, database)
    return (select.sql, select.condition.arguments)
  }

  /// Calls `body` for each row that passes, until it returns false.
  private func scan(_ select: Select, _ body: (Match) throws -> Bool) throws {
    let mayBeAbsent = try database.exists(
      "SELECT 1 FROM _kizunasync_absent WHERE tbl = ? LIMIT 1", .text(layout.name))
    try database.forEachHead(ofOnce: select.sql, select.condition.arguments) { statement in
      let cells = statement.row()
      guard let pk = layout.pk(of: cells) else { return true }
      // A cell that is absent is NULL, so a row without NULL has nothing to look up.
      let listed =
        mayBeAbsent && cells.contains(where: \.isNull)
        ? try Replica.absentList(layout.name, pk: pk, in: database) : []
      let row = Replica.exactRow(layout, cells: cells, listed: listed)
      if !select.condition.isExact, !select.evaluator.selects(row) { return true }
      return try body(Match(pk: pk, row: row))
    }
  }

  private func sorted(_ matches: [Match], _ select: Select) -> [Match] {
    let byKey = matches.sorted { JSONWriter.bytewise($0.pk, $1.pk) }
    guard select.hasOrders else { return byKey }
    return byKey.enumerated().sorted { left, right in
      if select.evaluator.precedes(left.element.row, right.element.row) { return true }
      return !select.evaluator.precedes(right.element.row, left.element.row) && left.offset < right.offset
    }.map(\.element)
  }

  /// A column the row lacks is null.
  static func project(_ row: RowMap, _ projection: [String]?) -> RowMap {
    guard let projection else { return row }
    return Dictionary(projection.map { ($0, row[$0] ?? .null) }, uniquingKeysWith: { first, _ in first })
  }
}

/// A plan made ready for one table: the statement, and what SQLite leaves to be decided.
private struct Select {
  let condition: FilterCompiler.Condition
  let evaluator: RowEvaluator
  /// The statement brings the rows in their final order.
  let isOrdered: Bool
  let hasOrders: Bool
  let sql: String

  init(_ plan: QueryPlan, _ table: TableLayout, _ database: Database) throws {
    let (layout, texts) = try table.tellingNumberTexts(of: plan, in: database)
    var filters = plan.filters.map { $0.settlingKeys(layout.config.key) }
    if let column = layout.config.softDeleteColumn, !plan.includeDeleted { filters.append(.isValue(column, nil)) }
    let filter = Predicate.and(filters)
    condition = FilterCompiler(layout: layout).condition(filter)
    evaluator = RowEvaluator(filter, orders: plan.orders, numberTexts: texts)
    hasOrders = !plan.orders.isEmpty
    var sql = "SELECT \(layout.allColumns) FROM \(layout.quoted) WHERE \(condition.sql)"
    // Sorted by the key without its index, where a range finds the rows: all of them are wanted, so nothing is gained by
    // walking along the key, and SQLite would take that for less work.
    let sortsRange = condition.isRange && plan.orders.isEmpty && plan.limit == nil
    if let order = Self.order(plan.orders, layout, key: sortsRange ? "+" : "") {
      isOrdered = true
      sql += " ORDER BY \(order)"
    } else {
      isOrdered = false
    }
    self.sql = sql
  }

  /// The order as SQL, keys last; nil where SQLite would order otherwise.
  private static func order(_ orders: [QueryPlan.Order], _ layout: TableLayout, key prefix: String) -> String? {
    // The text of a composite key is not ordered like its columns.
    guard layout.keyPositions.count == 1, let position = layout.keyPositions.first else { return nil }
    var terms: [String] = []
    for order in orders {
      guard let column = layout[order.column] else { continue }
      switch column.kind {
      case .json, .numeric: return nil
      case .text, .number, .boolean, nil: break
      }
      terms.append(
        "\(SQL.name(column.name)) COLLATE BINARY \(order.ascending ? "ASC" : "DESC") "
          + "NULLS \(order.putsNullsFirst ? "FIRST" : "LAST")")
    }
    let key = layout.columns[position]
    let name = SQL.name(key.name)
    terms.append(prefix + (key.kind == .text ? "\(name) COLLATE BINARY" : "CAST(\(name) AS TEXT) COLLATE BINARY"))
    return terms.joined(separator: ", ")
  }
}
