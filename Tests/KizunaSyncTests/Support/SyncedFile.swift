import HostKit
import KizunaSyncTestSupport

@testable import KizunaSync

/// A database file, a server in memory, and engines that keep the one in step with the other.
final class SyncedFile: Sendable {
  static let tables: [String: KizunaSyncTableConfig] = [
    "notes": KizunaSyncTableConfig(bucket: .byOwner("owner_id")),
    "todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["title": .text]),
  ]

  let path: String
  let server: SyncServer
  let transport: SyncServerTransport
  let clock = VirtualClock()
  /// `event` and what its fields say, of level info and above.
  let log = Locked<[(event: String, fields: [String: JSONValue])]>([])
  /// What engines said when their files were taken away.
  let losses: AsyncStream<KizunaSyncError>
  private let onLoss: AsyncStream<KizunaSyncError>.Continuation
  private let tables: [String: KizunaSyncTableConfig]

  init(_ folder: String, _ tables: [String: KizunaSyncTableConfig] = SyncedFile.tables) {
    path = folder + "/replica.db"
    self.tables = tables
    (losses, onLoss) = AsyncStream.makeStream()
    server = SyncServer(
      configuration: SyncServerConfiguration(
        tables: tables.mapValues { SyncTable(bucketColumn: $0.bucketColumn, keyColumns: $0.key) }))
    transport = SyncServerTransport(server)
  }

  /// The file, and the server, of another one, with other tables configured. The server knows those of the other one.
  init(of other: SyncedFile, _ tables: [String: KizunaSyncTableConfig]) {
    (path, server, transport) = (other.path, other.server, other.transport)
    self.tables = tables
    (losses, onLoss) = AsyncStream.makeStream()
  }

  var sql: PlainDatabase { get throws { try PlainDatabase(path) } }

  var events: [String] { log.withLock { $0.map(\.event) } }

  func text(of event: String, _ field: String) -> String? {
    log.withLock { $0.last { $0.event == event }?.fields[field]?.stringValue }
  }

  /// Opens an engine and closes it when `body` is done.
  func engine<Result>(limit: Int? = nil, _ body: (SyncEngine) async throws -> Result) async throws -> Result {
    let (log, onLoss) = (log, onLoss)
    let engine = try await SyncEngine.open(
      config: KizunaSyncClientConfig(
        tables: tables, databasePath: path,
        remote: .init(url: "http://localhost", publishableKey: "key", accessToken: TestToken.user(owner)),
        defaultLimit: limit),
      http: transport, clock: clock,
      log: HostLog(minimum: .info) { _, event, fields in
        log.withLock { $0.append((event, Dictionary(fields, uniquingKeysWith: { first, _ in first }))) }
      }, emit: { _ in }, onLoss: { onLoss.yield($0) })
    do {
      let result = try await body(engine)
      await engine.dispose()
      return result
    } catch {
      await engine.dispose()
      throw error
    }
  }

  /// One engine, one sync.
  func sync() async throws {
    try await engine { try await $0.sync() }
  }

  func serve(_ pk: String, _ columns: [String: JSONValue], in table: String = "todos") async throws {
    try await server.upsert(table, pk, columns.merging(["owner_id": .string(owner)]) { first, _ in first })
  }

  /// `id:column` of all rows, sorted.
  func rows(_ table: String = "todos", _ column: String = "title") throws -> [String] {
    try sql.texts("SELECT id || ':' || coalesce(\(column), 'NULL') FROM \(table) ORDER BY 1")
  }
}
