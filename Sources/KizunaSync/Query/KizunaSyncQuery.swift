import Foundation

/// Shorthand for the JSON of filter nodes and query plans, as ``KizunaSyncClient/query(table:plan:)`` takes them.
public enum KizunaSyncQuery {
  public static func eq(_ column: String, _ value: Any) -> [String: Any] { node("eq", column, value) }
  public static func neq(_ column: String, _ value: Any) -> [String: Any] { node("neq", column, value) }
  public static func gt(_ column: String, _ value: Any) -> [String: Any] { node("gt", column, value) }
  public static func gte(_ column: String, _ value: Any) -> [String: Any] { node("gte", column, value) }
  public static func lt(_ column: String, _ value: Any) -> [String: Any] { node("lt", column, value) }
  public static func lte(_ column: String, _ value: Any) -> [String: Any] { node("lte", column, value) }

  /// `%` and `*` any run, `_` one character, `\` escapes.
  public static func like(_ column: String, _ pattern: String) -> [String: Any] {
    ["kind": "like", "column": column, "pattern": pattern]
  }

  /// `like` without regard to case.
  public static func ilike(_ column: String, _ pattern: String) -> [String: Any] {
    ["kind": "ilike", "column": column, "pattern": pattern]
  }

  /// - Parameter value: nil means `IS NULL`.
  public static func `is`(_ column: String, _ value: Bool?) -> [String: Any] {
    node("is", column, value.map { $0 as Any } ?? NSNull())
  }

  public static func `in`(_ column: String, _ values: [Any]) -> [String: Any] {
    ["kind": "in", "column": column, "values": values]
  }

  public static func contains(_ column: String, _ value: Any) -> [String: Any] { node("contains", column, value) }
  public static func containedBy(_ column: String, _ value: Any) -> [String: Any] {
    node("containedBy", column, value)
  }

  public static func and(_ filters: [[String: Any]]) -> [String: Any] { ["kind": "and", "filters": filters] }
  public static func or(_ filters: [[String: Any]]) -> [String: Any] { ["kind": "or", "filters": filters] }
  public static func not(_ filter: [String: Any]) -> [String: Any] { ["kind": "not", "filter": filter] }

  /// A substring of the named columns, or of all cells that are text or numbers. Case makes no difference.
  public static func search(_ query: String, columns: [String]? = nil) -> [String: Any] {
    var node: [String: Any] = ["kind": "search", "query": query]
    node["columns"] = columns
    return node
  }

  public static func textSearch(_ column: String, _ query: String, type: KizunaSyncTextSearchType = .plain)
    -> [String: Any]
  {
    ["kind": "textSearch", "column": column, "query": query, "type": type.rawValue]
  }

  /// - Parameter nullsFirst: nil puts nulls last when ascending and first when descending.
  public static func order(_ column: String, ascending: Bool = true, nullsFirst: Bool? = nil) -> [String: Any] {
    var order: [String: Any] = ["column": column, "ascending": ascending]
    order["nullsFirst"] = nullsFirst
    return order
  }

  /// - Parameter cardinality: `many`, `single` or `maybeSingle`.
  public static func plan(
    filters: [[String: Any]] = [], order: [[String: Any]] = [], limit: Int? = nil, projection: [String]? = nil,
    cardinality: String = "many", includeDeleted: Bool = false
  ) -> [String: Any] {
    var plan: [String: Any] = ["filters": filters, "orders": order, "cardinality": cardinality]
    plan["limit"] = limit
    plan["projection"] = projection
    if includeDeleted { plan["includeDeleted"] = true }
    return plan
  }

  public static func many(filters: [[String: Any]] = []) -> [String: Any] { plan(filters: filters) }
  public static func single(filters: [[String: Any]] = []) -> [String: Any] {
    plan(filters: filters, cardinality: "single")
  }
  public static func maybeSingle(filters: [[String: Any]] = []) -> [String: Any] {
    plan(filters: filters, cardinality: "maybeSingle")
  }

  private static func node(_ kind: String, _ column: String, _ value: Any) -> [String: Any] {
    ["kind": kind, "column": column, "value": value]
  }
}
