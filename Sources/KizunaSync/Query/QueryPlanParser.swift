import HostKit

/// Reads plans and filter nodes from their JSON form. Unknown keys and kinds are errors: a filter that is silently
/// ignored would show or write rows nobody asked for.
enum QueryPlanParser {
  /// - Throws: `LOCAL_UNSUPPORTED` that names the key or kind.
  static func plan(_ json: [String: JSONValue]) throws -> QueryPlan {
    var plan = QueryPlan()
    for (key, value) in json where !value.isNull {
      switch key {
      case "filters": plan.filters = try filters(value, in: "filters")
      case "orders": plan.orders = try array(value, "orders").map(order)
      case "limit": plan.limit = try count(value, "limit")
      case "offset": plan.offset = try count(value, "offset")
      case "projection":
        plan.projection = try array(value, "projection").map { try string($0, "projection") }
      case "cardinality":
        guard let cardinality = QueryPlan.Cardinality(rawValue: try string(value, "cardinality")) else {
          throw unsupported("cardinality must be many, single or maybeSingle")
        }
        plan.cardinality = cardinality
      case "includeDeleted": plan.includeDeleted = try bool(value, "includeDeleted")
      case "count": plan.count = try wantsCount(value)
      default: throw unsupported("a query plan has no member \(key)")
      }
    }
    return plan
  }

  static func filters(_ value: JSONValue, in place: String) throws -> [Predicate] {
    try array(value, place).map { node in
      guard let object = node.objectValue else { throw unsupported("each of \(place) must be an object") }
      return try predicate(object)
    }
  }

  static func predicate(_ node: [String: JSONValue]) throws -> Predicate {
    var members = Members(node)
    let kind = try string(members.take("kind"), "kind of a filter")
    let result: Predicate
    switch kind {
    case "eq", "neq", "gt", "gte", "lt", "lte":
      let comparison = Predicate.Comparison(rawValue: kind) ?? .eq
      result = .compare(try members.column(), comparison, try members.take("value"))
    case "like", "ilike":
      result = .like(
        try members.column(), pattern: try string(members.take("pattern"), "pattern"), ignoringCase: kind == "ilike")
    case "is":
      let value = try members.take("value")
      result = .isValue(try members.column(), value.isNull ? nil : try bool(value, "value of is"))
    case "in": result = .isIn(try members.column(), try array(members.take("values"), "values"))
    case "contains": result = .contains(try members.column(), try members.take("value"))
    case "containedBy": result = .containedBy(try members.column(), try members.take("value"))
    case "overlaps": result = .overlaps(try members.column(), try members.take("value"))
    case "isDistinct": result = .isDistinct(try members.column(), from: try members.take("value"))
    case "regexMatch", "regexIMatch":
      let pattern = try string(members.take("pattern"), "pattern")
      result = .regex(try members.column(), try RegexPattern(pattern, ignoringCase: kind == "regexIMatch"))
    case "search":
      let columns = members.optional("columns")
      result = .search(
        try string(members.take("query"), "query"),
        columns: try columns.map { try array($0, "columns").map { try string($0, "columns") } })
    case "textSearch":
      let name = try members.optional("type").map { try string($0, "type") } ?? "plain"
      guard let type = KizunaSyncTextSearchType(rawValue: name) else {
        throw unsupported("the type of a text search must be plain, phrase or websearch")
      }
      result = .textSearch(try members.column(), try string(members.take("query"), "query"), type)
    case "and": result = .and(try filters(members.take("filters"), in: "filters"))
    case "or": result = .or(try filters(members.take("filters"), in: "filters"))
    case "not":
      guard let inner = try members.take("filter").objectValue else { throw unsupported("filter must be an object") }
      result = .not(try predicate(inner))
    default: throw unsupported("there is no filter of kind \(kind)")
    }
    try members.expectNoMore(kind)
    return result
  }

  private static func order(_ value: JSONValue) throws -> QueryPlan.Order {
    guard let object = value.objectValue else { throw unsupported("each of orders must be an object") }
    var members = Members(object)
    var order = QueryPlan.Order(column: try members.column())
    if let ascending = members.optional("ascending") { order.ascending = try bool(ascending, "ascending") }
    order.nullsFirst = try members.optional("nullsFirst").map { try bool($0, "nullsFirst") }
    try members.expectNoMore("order")
    return order
  }

  // MARK: Members

  /// The members of an object, each to be taken once.
  private struct Members {
    private var rest: [String: JSONValue]

    init(_ object: [String: JSONValue]) {
      rest = object
    }

    mutating func take(_ name: String) throws -> JSONValue {
      guard let value = rest.removeValue(forKey: name) else { throw unsupported("a filter lacks its \(name)") }
      return value
    }

    /// nil when absent or null.
    mutating func optional(_ name: String) -> JSONValue? {
      guard let value = rest.removeValue(forKey: name), !value.isNull else { return nil }
      return value
    }

    mutating func column() throws -> String {
      try string(take("column"), "column")
    }

    func expectNoMore(_ kind: String) throws {
      guard let extra = rest.keys.min() else { return }
      throw unsupported("a filter or order of kind \(kind) has no member \(extra)")
    }
  }

  private static func unsupported(_ message: String) -> KizunaSyncError {
    KizunaSyncError(.localUnsupported, message)
  }

  private static func string(_ value: JSONValue, _ name: String) throws -> String {
    guard let text = value.stringValue else { throw unsupported("\(name) must be text") }
    return text
  }

  private static func bool(_ value: JSONValue, _ name: String) throws -> Bool {
    guard let flag = value.boolValue else { throw unsupported("\(name) must be true or false") }
    return flag
  }

  private static func array(_ value: JSONValue, _ name: String) throws -> [JSONValue] {
    guard let array = value.arrayValue else { throw unsupported("\(name) must be a list") }
    return array
  }

  private static func count(_ value: JSONValue, _ name: String) throws -> Int {
    guard let count = value.intValue, count >= 0 else { throw unsupported("\(name) must be 0 or more") }
    return count
  }

  /// `true`, or one of the names of `KizunaSyncCountOption`.
  private static func wantsCount(_ value: JSONValue) throws -> Bool {
    if let flag = value.boolValue { return flag }
    guard let name = value.stringValue, KizunaSyncCountOption(rawValue: name) != nil else {
      throw unsupported("count must be exact, planned or estimated")
    }
    return true
  }
}
