import Foundation
import HostKit

/// The filters that reads and writes share. All filters of a chain must hold.
///
/// A chain may be built on any thread, one call at a time or not. What cannot be done is remembered, the first refusal
/// wins, and it is thrown when the chain runs.
public class KizunaSyncFilterBuilder: @unchecked Sendable {  // everything mutable is behind `chain`
  struct Chain: Sendable {
    var filters: [Predicate] = []
    var refusal: KizunaSyncError?
    var orders: [QueryPlan.Order] = []
    var limit: Int?
    var offset: Int?
    var includeDeleted = false
    var stripNulls = false
    var maxAffected: Int?

    mutating func refuse(_ message: String) {
      if refusal == nil { refusal = KizunaSyncError(.localUnsupported, message) }
    }
  }

  let table: KizunaSyncTable
  let chain = Locked(Chain())

  init(_ table: KizunaSyncTable) {
    self.table = table
  }

  @discardableResult
  func change(_ body: (inout Chain) throws -> Void) -> Self {
    chain.withLock { chain in
      do {
        try body(&chain)
      } catch let error as KizunaSyncError {
        if chain.refusal == nil { chain.refusal = error }
      } catch {
        chain.refuse("the filter was refused: \(error)")
      }
    }
    return self
  }

  /// The chain as it stands.
  /// - Throws: the first refusal.
  func settled() throws -> Chain {
    let chain = chain.withLock { $0 }
    if let refusal = chain.refusal { throw refusal }
    return chain
  }

  private func add(_ node: [String: Any]) -> Self {
    // Converted here, because the values the app passed are not ours to keep.
    let parsed = Result { try QueryPlanParser.predicate(PlainValue.json(from: node, at: "filter")) }
    return change { $0.filters.append(try parsed.get()) }
  }

  private static func any(_ value: Any?) -> Any { value ?? NSNull() }

  // MARK: Comparisons

  @discardableResult public func eq(_ column: String, _ value: Any) -> Self { add(KizunaSyncQuery.eq(column, value)) }
  @discardableResult public func neq(_ column: String, _ value: Any) -> Self {
    add(KizunaSyncQuery.neq(column, value))
  }
  @discardableResult public func gt(_ column: String, _ value: Any) -> Self { add(KizunaSyncQuery.gt(column, value)) }
  @discardableResult public func gte(_ column: String, _ value: Any) -> Self {
    add(KizunaSyncQuery.gte(column, value))
  }
  @discardableResult public func lt(_ column: String, _ value: Any) -> Self { add(KizunaSyncQuery.lt(column, value)) }
  @discardableResult public func lte(_ column: String, _ value: Any) -> Self {
    add(KizunaSyncQuery.lte(column, value))
  }

  /// - Parameter value: nil means `IS NULL`.
  @discardableResult public func `is`(_ column: String, _ value: Bool?) -> Self {
    add(KizunaSyncQuery.is(column, value))
  }

  @discardableResult public func `in`(_ column: String, _ values: [Any]) -> Self {
    add(KizunaSyncQuery.in(column, values))
  }

  @discardableResult public func notIn(_ column: String, values: [Any?]) -> Self {
    add(KizunaSyncQuery.not(KizunaSyncQuery.in(column, values.map(Self.any))))
  }

  /// Different, null being a value like any other.
  @discardableResult public func isDistinct(_ column: String, value: Any?) -> Self {
    add(["kind": "isDistinct", "column": column, "value": Self.any(value)])
  }

  // MARK: Patterns

  @discardableResult public func like(_ column: String, _ pattern: String) -> Self {
    add(KizunaSyncQuery.like(column, pattern))
  }
  @discardableResult public func ilike(_ column: String, _ pattern: String) -> Self {
    add(KizunaSyncQuery.ilike(column, pattern))
  }
  @discardableResult public func likeAllOf(_ column: String, patterns: [String]) -> Self {
    add(KizunaSyncQuery.and(patterns.map { KizunaSyncQuery.like(column, $0) }))
  }
  @discardableResult public func likeAnyOf(_ column: String, patterns: [String]) -> Self {
    add(KizunaSyncQuery.or(patterns.map { KizunaSyncQuery.like(column, $0) }))
  }
  @discardableResult public func iLikeAllOf(_ column: String, patterns: [String]) -> Self {
    add(KizunaSyncQuery.and(patterns.map { KizunaSyncQuery.ilike(column, $0) }))
  }
  @discardableResult public func iLikeAnyOf(_ column: String, patterns: [String]) -> Self {
    add(KizunaSyncQuery.or(patterns.map { KizunaSyncQuery.ilike(column, $0) }))
  }

  /// A regular expression that matches somewhere in the text.
  @discardableResult public func match(_ column: String, pattern: String) -> Self {
    add(["kind": "regexMatch", "column": column, "pattern": pattern])
  }

  /// `match` without regard to case.
  @discardableResult public func imatch(_ column: String, pattern: String) -> Self {
    add(["kind": "regexIMatch", "column": column, "pattern": pattern])
  }

  // MARK: Lists and objects

  @discardableResult public func contains(_ column: String, _ value: Any) -> Self {
    add(KizunaSyncQuery.contains(column, value))
  }
  @discardableResult public func containedBy(_ column: String, _ value: Any) -> Self {
    add(KizunaSyncQuery.containedBy(column, value))
  }
  @discardableResult public func overlaps(_ column: String, value: [Any?]) -> Self {
    add(["kind": "overlaps", "column": column, "value": value.map(Self.any)])
  }

  // MARK: Combinations

  @discardableResult public func or(_ filters: [[String: Any]]) -> Self { add(KizunaSyncQuery.or(filters)) }
  @discardableResult public func and(_ filters: [[String: Any]]) -> Self { add(KizunaSyncQuery.and(filters)) }
  @discardableResult public func not(_ filter: [String: Any]) -> Self { add(KizunaSyncQuery.not(filter)) }

  /// Every column equal to its value; nil means null, which nothing equals. Empty keeps every row on reads and is
  /// refused on writes.
  @discardableResult public func match(_ query: [String: Any?]) -> Self {
    add(KizunaSyncQuery.and(query.map { KizunaSyncQuery.eq($0.key, Self.any($0.value)) }))
  }

  /// A filter in the words of a PostgREST address: `eq`, `neq`, `gt`, `gte`, `lt`, `lte`, `like`, `ilike`, `is`, `in`,
  /// optionally behind `not.`. `is` takes `null`, `true` or `false`, `in` a list in parentheses.
  @discardableResult public func filter(_ column: String, operator: String, value: String) -> Self {
    let parsed = Result { try OperatorFilter.predicate(column, operator: `operator`, value: value) }
    return change { $0.filters.append(try parsed.get()) }
  }

  // MARK: Accepted or refused for source compatibility

  /// No effect: nothing here is sent.
  @discardableResult public func retry(enabled: Bool) -> Self { self }

  /// Refused when the chain runs.
  @discardableResult public func dryRun() -> Self { change { $0.refuse("dryRun() has no meaning on a replica") } }

  /// Refused when the chain runs.
  @discardableResult public func geojson() -> Self { change { $0.refuse("geojson() has no meaning on a replica") } }

  /// Refused when the chain runs.
  @discardableResult public func setHeader(name: String, value: String) -> Self {
    change { $0.refuse("setHeader() has no meaning on a replica") }
  }

  /// Refused when the chain runs.
  @discardableResult public func explain(
    analyze: Bool = false, verbose: Bool = false, settings: Bool = false, buffers: Bool = false, wal: Bool = false,
    format: String = "text"
  ) -> Self {
    change { $0.refuse("explain() has no meaning on a replica") }
  }
}
