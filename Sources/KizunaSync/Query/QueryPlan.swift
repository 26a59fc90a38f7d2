import HostKit

/// What a read asks for: filters, then a stable sort, then offset and limit, then the projection, then the cardinality.
struct QueryPlan: Equatable, Sendable {
  struct Order: Equatable, Sendable {
    var column: String
    var ascending = true
    /// nil: nulls last when ascending, first when descending.
    var nullsFirst: Bool?

    var putsNullsFirst: Bool { nullsFirst ?? !ascending }
  }

  enum Cardinality: String, Sendable {
    case many, single, maybeSingle
  }

  var filters: [Predicate] = []
  var orders: [Order] = []
  var limit: Int?
  var offset: Int?
  var projection: [String]?
  var cardinality = Cardinality.many
  var includeDeleted = false
  /// The answer also tells how many rows pass the filters, whatever limit and offset say.
  var count = false

  /// - Throws: `LOCAL_CONSTRAINT` when the number of rows is not what the cardinality allows.
  func checkCardinality(of count: Int) throws {
    switch cardinality {
    case .many: return
    case .single where count == 1: return
    case .maybeSingle where count <= 1: return
    default:
      let wanted = cardinality == .single ? "exactly one row" : "at most one row"
      let found = count == 0 ? "none" : "more than one"
      throw KizunaSyncError(.localConstraint, "\(wanted) must match, and \(found) does")
    }
  }
}
