import HostKit

/// An update or delete of whatever rows a filter matches, as one local transaction.
struct MatchingWrite: Sendable {
  enum Returning: Sendable {
    case nothing
    /// The rows, with these columns; nil means all.
    case rows([String]?)
  }

  struct Result: Sendable {
    /// The keys of the rows, in order.
    var pks: [String] = []
    /// The rows, when they were asked for.
    var rows: [RowMap] = []
  }

  var table: String
  var op: KizunaSyncOp
  var filter: Predicate
  var columns: RowMap = [:]
  var transforms: RowMap?
  var precondition: RowMap?
  var maxAffected: Int?
  var cardinality = QueryPlan.Cardinality.many
  /// Writes of one name are all-or-nothing on the server.
  var group: String?

  /// Inside a local transaction.
  /// - Throws: `LOCAL_UNSUPPORTED`, `LOCAL_CONSTRAINT` before anything is written; what `Replica.apply` throws.
  func perform(in session: WriteSession, clock: any HostClock, returning: Returning) throws -> Result {
    guard filter.isNaming else {
      throw KizunaSyncError(
        .localUnsupported,
        "an \(op.rawValue) of \(table) needs a filter that names its rows; without one it would hit all")
    }
    guard op != .insert else { throw KizunaSyncError(.localUnsupported, "an insert matches no rows") }
    let layout = try session.currentLayout(table)
    let plan = QueryPlan(filters: [filter], cardinality: cardinality)
    let matches = try QueryRunner(database: session.reader.database, layout: layout).matches(plan)
    try plan.checkCardinality(of: matches.count)
    if let maxAffected, matches.count > maxAffected {
      throw KizunaSyncError(
        .localConstraint, "\(matches.count) rows of \(table) match, more than the \(maxAffected) allowed")
    }
    let template = template(layout.config, clock)
    for match in matches {
      var write = template
      write.pk = match.pk
      try session.apply(write)
    }
    var result = Result(pks: matches.map(\.pk))
    if case .rows(let projection) = returning {
      let rows = try op == .delete ? matches.map(\.row) : matches.compactMap { try session.row(table, pk: $0.pk) }
      result.rows = rows.map { QueryRunner.project($0, projection) }
    }
    return result
  }

  /// A delete on a soft-delete table stamps one time on all rows.
  private func template(_ config: KizunaSyncTableConfig, _ clock: any HostClock) -> LocalWrite {
    if op == .delete, let column = config.softDeleteColumn, config.syncMode == .readWrite {
      let now = UTCTimestamp.text(milliseconds: clock.wallMilliseconds)
      return LocalWrite(
        table: table, op: .update, columns: [column: .string(now)], precondition: precondition, group: group)
    }
    return LocalWrite(
      table: table, op: op, columns: columns, transforms: transforms, precondition: precondition, group: group)
  }
}
