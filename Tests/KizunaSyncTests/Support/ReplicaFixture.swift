import HTTPClient
import HostKit
import KizunaSyncTestSupport

@testable import KizunaSync

let owner = "00000000-0000-4000-8000-a10000000001"

/// A replica without engine or network, in memory unless a path is given.
struct ReplicaFixture {
  let replica: Replica
  let clock = VirtualClock()
  let warnings: Locked<[String]>

  init(
    _ tables: [String: KizunaSyncTableConfig] = ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))],
    path: String? = nil, localOnly: Set<String> = [], signedIn: Bool = true, preparing script: String? = nil
  ) throws {
    if let path, let script {
      let database = try Database(DatabaseConfiguration(path: path, role: .writer))
      try database.execute(script)
      database.close()
    }
    let warnings = Locked<[String]>([])
    self.warnings = warnings
    let log = HostLog(minimum: .info) { _, event, _ in warnings.withLock { $0.append(event) } }
    replica = try Replica(
      Replica.Settings(path: path, clientID: RandomUUID.make(), tables: tables, localOnlyColumns: localOnly),
      clock: clock, log: log)
    if signedIn { _ = try replica.meet(owner: owner) }
  }

  var database: Database { replica.database }

  /// Plain SQL, as another program would run it.
  func sql(_ script: String) throws { try database.execute(script) }

  func apply(_ write: LocalWrite) throws -> String { try replica.localTransaction { try replica.apply(write) } }

  /// The queue as `op key columns`, after a harvest.
  func queue() throws -> [String] {
    try replica.harvestNow()
    return try database.map(OutboxEntry.selection + " ORDER BY seq", [], OutboxEntry.init).map {
      ["\($0.op)", $0.pk, $0.columns, $0.transforms].compactMap { $0 }.joined(separator: " ")
    }
  }

  func rows(_ table: String = "todos") throws -> [String: RowMap] {
    let session = ReadSession(database: database) { try replica.layout($0) }
    return Dictionary(uniqueKeysWithValues: try session.rows(table).map { ($0.pk, $0.columns) })
  }

  /// Applies one closing page.
  @discardableResult
  func pull(
    _ rows: [(pk: String, row: JSONValue)] = [], tombstones: [String] = [], cursor: String, table: String = "todos",
    hasMore: Bool = false, members: [String: JSONValue] = [:]
  ) throws -> [KizunaSyncEngineEvent] {
    var page: [String: JSONValue] = [
      "rows": .array(rows.map { ["table": .string(table), "pk": .string($0.pk), "row": $0.row, "seq": "1"] }),
      "tombstones": .array(
        tombstones.map { ["table": .string(table), "pk": .string($0), "seq": "1", "deleted_at": "now"] }),
      "cursor": .string(cursor), "has_more": .bool(hasMore), "signal": nil,
    ]
    page.merge(members) { _, new in new }
    let position = try replica.pullPosition(asking: [])
    let parsed = try PullPage(checking: JSONWriter.data(.object(page)))
    if hasMore {
      try replica.stage(parsed, at: position)
      return []
    }
    return try replica.close(with: parsed, at: position)
  }

  /// Sends what is queued and answers each write in order; nil applies it.
  @discardableResult
  func push(_ verdicts: [(reason: String, row: RowMap?)?]) throws -> [KizunaSyncEngineEvent] {
    let taken = try replica.take(limit: 500)
    let answers = zip(taken.entries, verdicts).map {
      PushReply.Verdict(mutationID: $0.mutationID, reason: $1?.reason, serverRow: $1?.row)
    }
    return try replica.settle(answers, of: taken)
  }
}

/// An engine over a scripted transport, with its events.
struct EngineFixture {
  let engine: SyncEngine
  let http: ScriptedHTTP
  let clock = VirtualClock()
  let events = Locked<[KizunaSyncEngineEvent]>([])

  static func config(
    _ tables: [String: KizunaSyncTableConfig] = ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))],
    path: String? = nil, token: String? = TestToken.user(owner), limit: Int? = nil
  ) -> KizunaSyncClientConfig {
    KizunaSyncClientConfig(
      tables: tables, databasePath: path,
      remote: KizunaSyncRemoteConfig(url: "http://127.0.0.1:1/", publishableKey: "key", accessToken: token),
      defaultLimit: limit)
  }

  init(_ config: KizunaSyncClientConfig = config(), http: ScriptedHTTP = ScriptedHTTP()) async throws {
    self.http = http
    let events = events
    engine = try await SyncEngine.open(config: config, http: http, clock: clock, log: .none) { event in
      events.withLock { $0.append(event) }
    }
    events.withLock { $0 = [] }
  }

  func seen() -> [KizunaSyncEngineEvent] { events.withLock { $0 } }

  static func page(cursor: String, rows: [JSONValue] = [], hasMore: Bool = false, signal: String? = nil) -> HTTPResponse
  {
    .json([
      "rows": .array(rows), "tombstones": [], "cursor": .string(cursor), "has_more": .bool(hasMore),
      "signal": signal.map { ["type": .string($0)] } ?? nil,
    ])
  }

  static func row(_ pk: String, _ row: JSONValue, table: String = "todos") -> JSONValue {
    ["table": .string(table), "pk": .string(pk), "row": row, "seq": "1"]
  }

  /// An answer that applies every mutation of the next push.
  static let appliesAll: ScriptedHTTP.Handler = { request in
    if request.path.hasSuffix("pull") { return page(cursor: "1") }
    let mutations = request.json?["batch"]?["mutations"]?.arrayValue ?? []
    return .json([
      "verdicts": .array(mutations.map { ["mutation_id": $0["mutation_id"] ?? nil, "verdict": "applied"] })
    ])
  }
}
