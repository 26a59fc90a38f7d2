import HostKit

// Reads and writes with an app's own types instead of `Any`: an addition to the Kizuna surface.
//
// Properties are columns, by their coding keys. Numbers keep their digits: a property takes a value exactly or the read
// fails with `JSON`, naming the column. Beside `Codable`'s own types: `Decimal` for `numeric`, `Date` for timestamps (ISO
// 8601, to the microsecond), `Data` for `bytea`, `UUID`, `URL`; a `String` takes a number as its digits, an integer also
// the digits in a text, a `Bool` also 0 and 1. An optional property is nil for null and for a missing column.

extension KizunaSyncSelectBuilder {
  /// Runs the read.
  /// - Throws: `JSON` for a row that is no `Row`, `LOCAL_UNSUPPORTED` for a chain with `count` or `head`.
  public func execute<Row: Decodable>(as type: Row.Type) async throws -> [Row] {
    try await typed(.many).map { try RowDecoder.decode(type, from: $0, table: table.name) }
  }

  /// - Throws: `LOCAL_CONSTRAINT` unless exactly one row matches, `JSON` when it is no `Row`.
  public func single<Row: Decodable>(as type: Row.Type) async throws -> Row {
    try RowDecoder.decode(type, from: try await typed(.single)[0], table: table.name)
  }

  /// - Returns: nil when no row matches.
  /// - Throws: `LOCAL_CONSTRAINT` when several match, `JSON` when the row is no `Row`.
  public func maybeSingle<Row: Decodable>(as type: Row.Type) async throws -> Row? {
    try await typed(.maybeSingle).first.map { try RowDecoder.decode(type, from: $0, table: table.name) }
  }
}

extension KizunaSyncWriteSelectBuilder {
  /// Writes, and answers the rows as ``execute()`` does. A row that is no `Row` is found out after the write.
  public func execute<Row: Decodable>(as type: Row.Type) async throws -> [Row] {
    try await rows(.many).map { try RowDecoder.decode(type, from: $0, table: table) }
  }

  public func single<Row: Decodable>(as type: Row.Type) async throws -> Row {
    try RowDecoder.decode(type, from: try await rows(.single)[0], table: table)
  }

  public func maybeSingle<Row: Decodable>(as type: Row.Type) async throws -> Row? {
    try await rows(.maybeSingle).first.map { try RowDecoder.decode(type, from: $0, table: table) }
  }
}

// Disfavoured, so that a dictionary always takes the way of `Any`, whatever its values are.

extension KizunaSyncTable {
  /// Inserts one row, as with a dictionary. A property that is nil is left out.
  /// - Throws: also `LOCAL_UNSUPPORTED` for a value that cannot be stored exactly, naming the column.
  @_disfavoredOverload
  public func insert(_ row: some Encodable) async throws {
    let columns = try RowEncoder.encode(row, table: name)
    _ = try await client.apply(LocalWrite(table: name, op: .insert, columns: columns))
  }

  /// Starts an update of the rows the filters match. A property that is nil is left out, so its column stays; a
  /// dictionary with `NSNull()` sets it to null.
  @_disfavoredOverload
  public func update(
    _ changes: some Encodable, transforms: [String: Any]? = nil, precondition: [String: Any]? = nil
  ) -> KizunaSyncWriteBuilder {
    let name = name
    let columns = Result { try RowEncoder.encode(changes, table: name) }
    return KizunaSyncWriteBuilder(
      self, .update, columns: columns, transforms: transforms, precondition: precondition)
  }
}

extension KizunaSyncTransaction {
  /// Inserts one row.
  /// - Returns: its key text, minted where a lone `id` is left out.
  @_disfavoredOverload @discardableResult
  public func insert(into table: String, _ row: some Encodable) throws -> String {
    try insert(into: table, columns: RowEncoder.encode(row, table: table))
  }

  /// Reads with a plan; sees the writes made so far.
  public func query<Row: Decodable>(table: String, plan: [String: Any] = [:], as type: Row.Type) throws -> [Row] {
    try rows(table: table, plan: plan).map { try RowDecoder.decode(type, from: $0, table: table) }
  }
}
