import Foundation
import HostKit

/// An update or delete of the rows that filters match. Nothing happens until `execute`, or a `select` that is executed.
public final class KizunaSyncWriteBuilder: KizunaSyncFilterBuilder, @unchecked Sendable {  // as its base
  private let op: KizunaSyncOp
  private let columns: [String: JSONValue]
  private let transforms: [String: JSONValue]?
  private let precondition: [String: JSONValue]?

  convenience init(
    _ table: KizunaSyncTable, _ op: KizunaSyncOp, columns: [String: Any], transforms: [String: Any]?,
    precondition: [String: Any]?
  ) {
    let name = table.name
    self.init(
      table, op, columns: Result { try PlainValue.json(from: columns, at: name) }, transforms: transforms,
      precondition: precondition)
  }

  /// - Parameter columns: their refusal is thrown when the chain runs.
  init(
    _ table: KizunaSyncTable, _ op: KizunaSyncOp, columns: Result<[String: JSONValue], any Error>,
    transforms: [String: Any]?, precondition: [String: Any]?
  ) {
    self.op = op
    let name = table.name
    let parsed = Result {
      (
        try columns.get(), try transforms.map { try PlainValue.json(from: $0, at: name) },
        try precondition.map { try PlainValue.json(from: $0, at: name) }
      )
    }
    let values = try? parsed.get()
    self.columns = values?.0 ?? [:]
    self.transforms = values?.1
    self.precondition = values?.2
    super.init(table)
    change { _ in _ = try parsed.get() }
  }

  /// Refuses the write when more rows match. At most 4,294,967,295.
  @discardableResult public func maxAffected(_ value: Int) -> Self {
    change { chain in
      guard (0...4_294_967_295).contains(value) else { return chain.refuse("maxAffected must be 0 to 4294967295") }
      chain.maxAffected = value
    }
  }

  /// Writes the rows and queues each.
  /// - Returns: their keys, in order.
  /// - Throws: `LOCAL_UNSUPPORTED` for a chain without a filter that names rows; `LOCAL_CONSTRAINT` when more rows match
  ///   than `maxAffected` allows. Then nothing is written.
  @discardableResult
  public func execute() async throws -> [String] {
    try await table.client.write(request(), returning: .nothing).pks
  }

  /// Answers the rows: after an update as they are then, after a delete as they were, in the order of their keys.
  public func select(_ columns: String = "*") -> KizunaSyncWriteSelectBuilder {
    KizunaSyncWriteSelectBuilder(self, columns: columns)
  }

  func request(_ cardinality: QueryPlan.Cardinality = .many) throws -> MatchingWrite {
    let chain = try settled()
    return MatchingWrite(
      table: table.name, op: op, filter: .and(chain.filters), columns: columns, transforms: transforms,
      precondition: precondition, maxAffected: chain.maxAffected, cardinality: cardinality)
  }
}

/// A write that answers the rows it touched.
public final class KizunaSyncWriteSelectBuilder: @unchecked Sendable {  // everything mutable is behind a lock
  private let write: KizunaSyncWriteBuilder
  private let columns: String
  private let strips = Locked(false)

  init(_ write: KizunaSyncWriteBuilder, columns: String) {
    self.write = write
    self.columns = columns
  }

  /// Leaves null columns out of the rows.
  @discardableResult public func stripNulls() -> Self {
    strips.withLock { $0 = true }
    return self
  }

  /// No effect: nothing here is sent.
  @discardableResult public func retry(enabled: Bool) -> Self { self }

  /// - Returns: `[[String: Any]]`.
  public func execute() async throws -> Any {
    RowShape.rows(try await rows(.many), stripNulls: strips.withLock { $0 })
  }

  /// - Returns: the row, as `[String: Any]`.
  /// - Throws: `LOCAL_CONSTRAINT` unless exactly one row matches; then nothing is written.
  public func single() async throws -> Any {
    RowShape.row(try await rows(.single)[0], stripNulls: strips.withLock { $0 })
  }

  /// - Returns: the row, as `[String: Any]`, or `NSNull` when none matches.
  /// - Throws: `LOCAL_CONSTRAINT` when several match; then nothing is written.
  public func maybeSingle() async throws -> Any {
    try await rows(.maybeSingle).first.map { RowShape.row($0, stripNulls: strips.withLock { $0 }) } ?? NSNull()
  }

  var table: String { write.table.name }

  func rows(_ cardinality: QueryPlan.Cardinality) async throws -> [RowMap] {
    let projection = try Projection.columns(columns)
    return try await write.table.client.write(write.request(cardinality), returning: .rows(projection)).rows
  }
}
