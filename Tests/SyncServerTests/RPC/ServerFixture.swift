import HostKit
import SyncServer

/// A server value with shorthand for requests and answers.
struct ServerFixture {
  static let me = "00000000-0000-4000-8000-a10000000001"
  static let other = "00000000-0000-4000-8000-a10000000002"

  var state: SyncServerState
  var caller = Caller.user(me)
  /// Milliseconds since 1970.
  var now: Int64 = 1_767_225_600_000

  init(
    _ tables: [String: SyncTable] = ["todos": SyncTable(bucketColumn: "owner_id")],
    configure: (inout SyncServerConfiguration) -> Void = { _ in }
  ) {
    var configuration = SyncServerConfiguration(tables: tables)
    configure(&configuration)
    state = SyncServerState(configuration: configuration)
  }

  mutating func upsert(
    _ pk: String, _ columns: [String: JSONValue], table: String = "todos", owner: String? = me, hlc: String? = nil
  ) throws {
    var columns = columns
    if let owner { columns["owner_id"] = .string(owner) }
    try state.apply([.upsert(table: table, pk: pk, columns: columns, hlc: hlc)], now: now)
  }

  mutating func delete(_ pk: String, table: String = "todos") throws {
    try state.apply([.delete(table: table, pk: pk)], now: now)
  }

  static func bucket(_ table: String = "todos", _ params: JSONValue = ["owner_id": .string(me)]) -> JSONValue {
    ["table": .string(table), "params": params]
  }

  mutating func pull(
    _ cursor: String = "0", limit: Int? = nil, buckets: [JSONValue] = [bucket()], schema: JSONValue = 1
  ) -> RPCAnswer {
    var body: [String: JSONValue] = [
      "buckets": .array(buckets), "cursor": .string(cursor), "schema_version": schema,
    ]
    if let limit { body["limit"] = .int(limit) }
    return state.pull(.object(body), caller: caller)
  }

  mutating func push(
    _ mutations: [JSONValue], atomic: Bool = false, schema: JSONValue = 1
  ) -> RPCAnswer {
    let body: JSONValue = [
      "batch": ["atomic": .bool(atomic), "mutations": .array(mutations)], "last_mutation_id": nil,
      "schema_version": schema,
    ]
    return state.push(body, caller: caller, now: now)
  }

  /// The only verdict of a push of one mutation, as `applied`, a reason, or an error code.
  mutating func verdict(_ mutation: JSONValue) -> String {
    switch push([mutation]) {
    case .failure(let error): error.code
    case .success(let body):
      body["verdicts"]?[0]?["reason"]?.stringValue ?? body["verdicts"]?[0]?["verdict"]?.stringValue ?? "?"
    }
  }

  static func id(_ n: Int) -> JSONValue {
    .string("00000000-0000-4000-8000-\(String(0xF1_00_00_00_00_00 + n, radix: 16))")
  }

  static func insert(_ n: Int, _ pk: String, _ columns: [String: JSONValue] = [:], owner: String? = me) -> JSONValue {
    var columns = columns
    if let owner { columns["owner_id"] = .string(owner) }
    return mutation(n, "insert", pk, columns)
  }

  static func update(_ n: Int, _ pk: String, _ columns: [String: JSONValue], _ more: [String: JSONValue] = [:])
    -> JSONValue
  {
    mutation(n, "update", pk, columns, more)
  }

  static func delete(_ n: Int, _ pk: String) -> JSONValue { mutation(n, "delete", pk, [:]) }

  static func mutation(
    _ n: Int, _ op: String, _ pk: String, _ columns: [String: JSONValue], _ more: [String: JSONValue] = [:]
  ) -> JSONValue {
    var members: [String: JSONValue] = [
      "mutation_id": id(n), "table": "todos", "pk": .string(pk), "op": .string(op), "columns": .object(columns),
    ]
    members.merge(more) { _, given in given }
    return .object(members)
  }
}

extension RPCAnswer {
  var json: JSONValue { body }

  var code: String? {
    if case .failure(let error) = self { error.code } else { nil }
  }

  /// The keys of the delivered rows.
  var rows: [String] { body["rows"]?.arrayValue?.compactMap { $0["pk"]?.stringValue } ?? [] }
  var tombstones: [String] { body["tombstones"]?.arrayValue?.compactMap { $0["pk"]?.stringValue } ?? [] }
  var cursor: String? { body["cursor"]?.stringValue }
  var hasMore: Bool? { body["has_more"]?.boolValue }
  var signal: String? { body["signal"]?["type"]?.stringValue }
}
