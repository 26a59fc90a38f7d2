import HostKit

/// Writes that belong together: one local transaction, and one all-or-nothing batch on the server.
///
/// Valid inside the closure of ``KizunaSyncClient/transaction(_:)`` only. Its calls run on the client's own thread and
/// must not wait for the client.
public final class KizunaSyncTransaction {
  private let session: WriteSession
  private let clock: any HostClock
  private let group: String

  init(_ session: WriteSession, clock: any HostClock) {
    self.session = session
    self.clock = clock
    group = RandomUUID.make()
  }

  /// Inserts one row.
  /// - Returns: its key text, minted where a lone `id` is left out.
  @discardableResult
  public func insert(into table: String, _ columns: [String: Any]) throws -> String {
    try insert(into: table, columns: PlainValue.json(from: columns, at: table))
  }

  func insert(into table: String, columns: RowMap) throws -> String {
    try session.apply(LocalWrite(table: table, op: .insert, columns: columns, group: group))
  }

  /// Updates or deletes one row.
  public func apply(
    table: String, pk: String, op: KizunaSyncOp, columns: [String: Any] = [:], transforms: [String: Any]? = nil,
    precondition: [String: Any]? = nil
  ) throws {
    try session.apply(
      LocalWrite(
        table: table, pk: pk, op: op, columns: try PlainValue.json(from: columns, at: table),
        transforms: try transforms.map { try PlainValue.json(from: $0, at: table) },
        precondition: try precondition.map { try PlainValue.json(from: $0, at: table) }, group: group))
  }

  /// Updates or deletes the rows that filters match, as ``KizunaSyncClient/applyWhere(table:op:filters:columns:transforms:precondition:)``.
  @discardableResult
  public func applyWhere(
    table: String, op: KizunaSyncOp, filters: [[String: Any]], columns: [String: Any] = [:],
    transforms: [String: Any]? = nil, precondition: [String: Any]? = nil
  ) throws -> [String] {
    let write = MatchingWrite(
      table: table, op: op,
      filter: .and(try filters.map { try QueryPlanParser.predicate(PlainValue.json(from: $0, at: "filters")) }),
      columns: try PlainValue.json(from: columns, at: table),
      transforms: try transforms.map { try PlainValue.json(from: $0, at: table) },
      precondition: try precondition.map { try PlainValue.json(from: $0, at: table) }, group: group)
    return try write.perform(in: session, clock: clock, returning: .nothing).pks
  }

  /// Reads with a plan; sees the writes made so far.
  public func query(table: String, plan: [String: Any] = [:]) throws -> [[String: Any]] {
    RowShape.rows(try rows(table: table, plan: plan), stripNulls: false)
  }

  func rows(table: String, plan: [String: Any]) throws -> [RowMap] {
    let parsed = try QueryPlanParser.plan(PlainValue.json(from: plan, at: "plan"))
    return try QueryRunner(database: session.reader.database, layout: session.currentLayout(table)).answer(parsed).rows
  }
}

extension KizunaSyncClient {
  /// Makes several writes as one: all of them are there, locally and on the server, or none is. An addition to the Kizuna
  /// surface.
  ///
  /// The writes must fit one batch of the server (500 by default); a refusal of one of them takes all back and is
  /// reported as `batchAborted`.
  /// - Throws: what `body` throws, after undoing its writes.
  public func transaction<Result: Sendable>(
    _ body: @escaping @Sendable (KizunaSyncTransaction) throws -> Result
  ) async throws -> Result {
    let clock = clock
    return try await engine().write { session in
      try body(KizunaSyncTransaction(session, clock: clock))
    }
  }
}
