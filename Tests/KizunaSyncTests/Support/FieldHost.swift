import HostKit
import KizunaSyncTestSupport
import SyncServer

@testable import KizunaSync

/// A host with its database on disk, and the server model behind it.
final class FieldHost: Sendable {
  let path: String
  let transport: ModelTransport
  let clock: VirtualClock
  /// `event` of level info and above, with its fields.
  let log = Locked<[(event: String, fields: [String: JSONValue])]>([])
  private let tables: [String: KizunaSyncTableConfig]
  private let limit: Int?

  /// - Parameters:
  ///   - beside: another host, whose server this one uses.
  ///   - script: run on the file before it is first opened.
  init(
    _ folder: String, name: String = "a", tables: [String: KizunaSyncTableConfig], served: [String: SyncTable] = [:],
    maxPullScan: Int = 5000, limit: Int? = nil, wallMilliseconds: Int64 = 1_767_225_600_000,
    beside: FieldHost? = nil, preparing script: String? = nil
  ) throws {
    path = "\(folder)/\(name).db"
    clock = VirtualClock(wallMilliseconds: wallMilliseconds)
    self.tables = tables
    self.limit = limit
    transport =
      beside?.transport
      ?? ModelTransport(
        SyncServerState(configuration: SyncServerConfiguration(tables: served, maxPullScan: maxPullScan)))
    StatementSpy.prepare()
    if let script {
      let sql = try PlainDatabase(path)
      try sql.run(script)
      sql.close()
    }
  }

  func open() async throws -> SyncEngine {
    let log = log
    return try await SyncEngine.open(
      config: EngineFixture.config(tables, path: path, limit: limit), http: transport, clock: clock,
      log: HostLog(minimum: .info) { _, event, fields in
        log.withLock { $0.append((event, Dictionary(fields, uniquingKeysWith: { first, _ in first }))) }
      }, emit: { _ in })
  }

  /// Opens an engine and closes it when `body` is done.
  func engine<Result>(_ body: (SyncEngine) async throws -> Result) async throws -> Result {
    let engine = try await open()
    do {
      let result = try await body(engine)
      await engine.dispose()
      return result
    } catch {
      await engine.dispose()
      throw error
    }
  }

  func sync() async throws { try await engine { try await $0.sync() } }

  /// Plain SQL by another program.
  func run(_ script: String) throws {
    let sql = try PlainDatabase(path)
    defer { sql.close() }
    try sql.run(script)
  }

  /// The first column of the rows.
  func texts(_ query: String) throws -> [String] {
    let sql = try PlainDatabase(path)
    defer { sql.close() }
    return try sql.texts(query)
  }

  func serve(_ pk: String, _ columns: [String: JSONValue], in table: String = "todos") throws {
    try transport.server.withLock { server in
      try server.apply(
        [
          .upsert(table: table, pk: pk, columns: columns.merging(["owner_id": .string(owner)]) { first, _ in first })
        ], now: 0)
    }
  }

  func delete(_ pk: String, from table: String = "todos") throws {
    try transport.server.withLock { try $0.apply([.delete(table: table, pk: pk)], now: 0) }
  }

  func served(_ pk: String, in table: String = "todos") -> RowMap? {
    transport.server.withLock { $0.row(table, pk) }
  }

  func events(_ name: String) -> [[String: JSONValue]] {
    log.withLock { $0 }.filter { $0.event == name }.map(\.fields)
  }

  static let todos: [String: KizunaSyncTableConfig] = ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))]

  static func todos(_ columns: [String: ColumnType], isClosed: Bool = false) -> [String: SyncTable] {
    [
      "todos": SyncTable(
        bucketColumn: "owner_id",
        columns: columns.merging(["owner_id": .text]) { first, _ in first }, isClosed: isClosed,
        includesKeyColumns: true)
    ]
  }
}
