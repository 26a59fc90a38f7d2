import HostKit

/// A filter of a query plan, parsed and checked (Swift surface §6).
indirect enum Predicate: Equatable, Sendable {
  enum Comparison: String, Sendable, CaseIterable {
    case eq, neq, gt, gte, lt, lte
  }

  case compare(String, Comparison, JSONValue)
  case like(String, pattern: String, ignoringCase: Bool)
  /// nil means null.
  case isValue(String, Bool?)
  case isIn(String, [JSONValue])
  case isDistinct(String, from: JSONValue)
  case contains(String, JSONValue)
  case containedBy(String, JSONValue)
  case overlaps(String, JSONValue)
  case regex(String, RegexPattern)
  case search(String, columns: [String]?)
  case textSearch(String, String, KizunaSyncTextSearchType)
  case and([Predicate])
  case or([Predicate])
  case not(Predicate)

  /// Whether the filter singles rows out. A write without such a filter would hit every row and is refused.
  var isNaming: Bool {
    switch self {
    case .and(let parts): parts.contains(where: \.isNaming)
    case .or(let parts): !parts.isEmpty && parts.allSatisfy(\.isNaming)
    case .not(let part): part.isNaming
    // Every text holds the empty one.
    case .search(let query, _), .textSearch(_, let query, _): !TextMatch.trimmed(query).isEmpty
    default: true
    }
  }

  /// The columns it asks about; a search names those it is limited to.
  var columns: [String] {
    switch self {
    case .compare(let column, _, _), .like(let column, _, _), .isValue(let column, _), .isIn(let column, _),
      .isDistinct(let column, _), .contains(let column, _), .containedBy(let column, _), .overlaps(let column, _),
      .regex(let column, _), .textSearch(let column, _, _):
      [column]
    case .search(_, let columns): columns ?? []
    case .and(let parts), .or(let parts): parts.flatMap(\.columns)
    case .not(let part): part.columns
    }
  }

  /// The same with uuid-shaped values in lower case where they are compared with a key column, as keys are spelled.
  func settlingKeys(_ key: [String]) -> Predicate {
    func settled(_ column: String, _ value: JSONValue) -> JSONValue {
      guard key.contains(column), case .string(let text) = value, RandomUUID.isWellFormed(text) else { return value }
      return .string(text.lowercased())
    }
    return switch self {
    case .compare(let column, let comparison, let value): .compare(column, comparison, settled(column, value))
    case .isIn(let column, let values): .isIn(column, values.map { settled(column, $0) })
    case .isDistinct(let column, let value): .isDistinct(column, from: settled(column, value))
    case .and(let parts): .and(parts.map { $0.settlingKeys(key) })
    case .or(let parts): .or(parts.map { $0.settlingKeys(key) })
    case .not(let part): .not(part.settlingKeys(key))
    default: self
    }
  }
}
