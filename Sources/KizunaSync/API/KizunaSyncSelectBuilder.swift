import Foundation
import HostKit

/// A read of one table, from the replica. Built with filters, order and limits, run by `execute`, `single`,
/// `maybeSingle` or `csv`.
public final class KizunaSyncSelectBuilder: KizunaSyncFilterBuilder, @unchecked Sendable {  // as its base
  private let projection: [String]?
  private let head: Bool
  private let count: Bool

  init(_ table: KizunaSyncTable, columns: String, head: Bool, count: Bool) {
    let parsed = Result { try Projection.columns(columns) }
    projection = (try? parsed.get()) ?? nil
    self.head = head
    self.count = count
    super.init(table)
    change { _ in _ = try parsed.get() }
  }

  /// A substring of the named columns, or of all cells that are text or numbers. Case makes no difference; a blank
  /// query keeps every row.
  @discardableResult public func search(_ query: String, columns: [String]? = nil) -> Self {
    change { $0.filters.append(.search(query, columns: columns)) }
  }

  @discardableResult public func textSearch(
    _ column: String, _ query: String, type: KizunaSyncTextSearchType = .plain
  ) -> Self {
    change { $0.filters.append(.textSearch(column, query, type)) }
  }

  /// Adds a sort key. Rows that tie, and rows of a read without order, come in the order of their keys' bytes.
  /// - Parameter nullsFirst: nil puts nulls last when ascending and first when descending.
  @discardableResult public func order(
    _ column: String, ascending: Bool = true, nullsFirst: Bool? = nil
  ) -> Self {
    change { $0.orders.append(.init(column: column, ascending: ascending, nullsFirst: nullsFirst)) }
  }

  /// After `range` it replaces only the number of rows.
  @discardableResult public func limit(_ count: Int) -> Self {
    change { chain in
      guard count >= 0 else { return chain.refuse("limit must be 0 or more") }
      chain.limit = count
    }
  }

  /// Rows `from` to `to`, counted from 0, both included; `to` = `from` - 1 keeps none.
  @discardableResult public func range(from: Int, to: Int) -> Self {
    change { chain in
      guard from >= 0, to >= from - 1 else { return chain.refuse("range needs 0 ≤ from ≤ to + 1") }
      chain.offset = from
      chain.limit = to - from + 1
    }
  }

  /// Also rows whose soft-delete column is set.
  @discardableResult public func includeDeleted() -> Self {
    change { $0.includeDeleted = true }
  }

  /// Leaves null columns out of the rows.
  @discardableResult public func stripNulls() -> Self {
    change { $0.stripNulls = true }
  }

  /// - Returns: `[[String: Any]]`; with `count` or `head` `["rows": …, "count": n]`, where `head` makes `rows` `NSNull`.
  public func execute() async throws -> Any {
    let (answer, chain) = try await run(.many)
    guard head || count else { return RowShape.rows(answer.rows, stripNulls: chain.stripNulls) }
    let rows: Any = head ? NSNull() : RowShape.rows(answer.rows, stripNulls: chain.stripNulls)
    return ["rows": rows, "count": answer.count ?? 0]
  }

  /// - Returns: the row, as `[String: Any]`.
  /// - Throws: `LOCAL_CONSTRAINT` unless exactly one row matches.
  public func single() async throws -> Any {
    let (answer, chain) = try await run(.single)
    return RowShape.row(answer.rows[0], stripNulls: chain.stripNulls)
  }

  /// - Returns: the row, as `[String: Any]`, or `NSNull` when none matches.
  /// - Throws: `LOCAL_CONSTRAINT` when several match.
  public func maybeSingle() async throws -> Any {
    let (answer, chain) = try await run(.maybeSingle)
    return answer.rows.first.map { RowShape.row($0, stripNulls: chain.stripNulls) } ?? NSNull()
  }

  /// The rows as RFC 4180 text. The header is the projection, or the sorted column names.
  public func csv() async throws -> String {
    let (answer, _) = try await run(.many)
    return CSVText.text(answer.rows, columns: projection)
  }

  /// The rows for an app's own type.
  func typed(_ cardinality: QueryPlan.Cardinality) async throws -> [RowMap] {
    guard !head, !count else {
      throw KizunaSyncError(.localUnsupported, "typed reads answer rows and no count; leave head and count out")
    }
    return try await run(cardinality).0.rows
  }

  private func run(_ cardinality: QueryPlan.Cardinality) async throws -> (QueryAnswer, Chain) {
    let chain = try settled()
    let countOnly = head && cardinality == .many
    let plan = QueryPlan(
      filters: chain.filters, orders: chain.orders, limit: countOnly ? 0 : chain.limit, offset: chain.offset,
      projection: projection, cardinality: cardinality, includeDeleted: chain.includeDeleted, count: head || count)
    return (try await table.client.answer(plan, table: table.name), chain)
  }
}
