import HostKit
import KizunaSyncTestSupport
import PostgresTestSupport
import Testing

/// Random histories on the pack and on the in-memory server: every answer must be the same, but for seqs and times.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct ModelComparisonTests {
  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func answersAsTheModelDoes(seed: UInt64) async throws {
    try await PackDatabase.withTodos(", key_columns => '{id}'") { pack in
      var pair = try ServerPair(pack, seed: seed)
      for step in 1...60 {
        if let difference = try await pair.step() {
          Issue.record("seed \(seed), step \(step): \(difference)")
          break
        }
      }
      await pair.end()
    }
  }
}

/// The same requests and writes for both servers.
private struct ServerPair {
  private var model: SyncServerState
  private let session: SQLSession
  private var random: SeededRandom
  /// Each user's cursor on either server.
  private var cursors: [String: (model: String, pack: String)] = [:]
  private var pushes: [(user: String, request: JSONValue)] = []
  private var nextMutation = 0

  init(_ pack: PackDatabase, seed: UInt64) throws {
    let table = SyncTable(
      bucketColumn: "owner_id",
      columns: ["id": .uuid, "owner_id": .uuid, "title": .text, "n": .integer, "done": .boolean, "labels": .textArray],
      isClosed: true, includesKeyColumns: true)
    model = SyncServerState(configuration: SyncServerConfiguration(tables: ["todos": table]), firstSeq: 1)
    session = try pack.database.session()
    random = SeededRandom(seed)
  }

  func end() async { await session.end() }

  mutating func step() async throws -> String? {
    switch pick(10) {
    case 0: return try await write("delete from public.todos where id = '\(Name.row(1 + pick(6)))'")
    case 1, 2:
      let row = 1 + pick(6)
      let owner = pick(2) == 0 ? Name.ann : Name.bob
      return try await upsert(
        row, ["owner_id": .string(owner), "title": .string("sql \(pick(9))"), "n": .int(pick(9))])
    case 3 where pick(4) == 0: return try await reap()
    case 4 where !pushes.isEmpty:
      let old = pushes[pick(pushes.count)]
      return try await push(old.user, old.request)
    case 3, 4, 5, 6:
      let mutations = (0..<(1 + pick(3))).map { _ in mutation() }
      return try await push(user(), PackDatabase.request(atomic: pick(4) == 0, mutations))
    default: return try await pull(user())
    }
  }

  // MARK: Doing it twice

  private mutating func push(_ user: String, _ request: JSONValue) async throws -> String? {
    pushes.append((user, request))
    let expected = model.push(request, caller: .user(user), now: 1_767_225_600_000)
    let answer = try await call("push", request, user)
    return Self.compare(request, expected.body, answer)
  }

  private mutating func pull(_ user: String) async throws -> String? {
    let cursor = cursors[user] ?? ("0", "0")
    let limit = pick(3) == 0 ? 500 : 1 + pick(3)
    func request(_ cursor: String) -> JSONValue {
      [
        "buckets": [["table": "todos", "params": ["owner_id": .string(user)]]], "cursor": .string(cursor),
        "limit": .int(limit), "schema_version": 1,
      ]
    }
    let expected = model.pull(request(cursor.model), caller: .user(user)).body
    let answer = try await call("pull", request(cursor.pack), user)
    let isExpired = expected["signal"]?.isNull == false
    cursors[user] =
      isExpired ? nil : (expected["cursor"]?.stringValue ?? "", answer["cursor"]?.stringValue ?? "")
    return Self.compare(request(cursor.model), expected, answer)
  }

  private mutating func upsert(_ row: Int, _ cells: [String: JSONValue]) async throws -> String? {
    try model.apply([.upsert(table: "todos", pk: Name.row(row), columns: cells, hlc: nil)], now: 1_767_225_600_000)
    let names = cells.keys.sorted()
    try await session.run(
      """
      insert into public.todos (id, n, \(names.filter { $0 != "n" }.joined(separator: ", ")))
      select '\(Name.row(row))', r.n, \(names.filter { $0 != "n" }.map { "r.\($0)" }.joined(separator: ", "))
      from jsonb_populate_record(null::public.todos, \(PackDatabase.quoted(JSONWriter.text(.object(cells))))) as r
      on conflict (id) do update set \(names.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
      """)
    return nil
  }

  private mutating func write(_ delete: String) async throws -> String? {
    let row = String(delete.dropLast().suffix(36))
    try model.apply([.delete(table: "todos", pk: row)], now: 1_767_225_600_000)
    try await session.run(delete)
    return nil
  }

  private mutating func reap() async throws -> String? {
    model.reap(now: nil)
    try await session.run(
      """
      update kizunasync.settings set tombstone_ttl_days = 0;
      select kizunasync.reap_tombstones();
      update kizunasync.settings set tombstone_ttl_days = 30
      """)
    return nil
  }

  private func call(_ function: String, _ request: JSONValue, _ user: String) async throws -> JSONValue {
    let rows = try await session.run(PackDatabase.callText(function, request, as: user))
    return try JSONValue(parsing: rows.joined(separator: "\n"))
  }

  // MARK: Making them up

  private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  private mutating func user() -> String { pick(2) == 0 ? Name.ann : Name.bob }

  private mutating func mutation() -> JSONValue {
    nextMutation += 1
    let op = ["insert", "update", "update", "delete"][pick(4)]
    var columns: [String: JSONValue] = [:]
    var more: [String: JSONValue] = [:]
    if op != "delete" {
      if pick(3) > 0 { columns["title"] = .string("push \(pick(9))") }
      if pick(3) == 0 { columns["done"] = .bool(pick(2) == 0) }
      if op == "update", pick(12) == 0 { columns["n"] = "no number" }
      if pick(15) == 0 { columns["no_such_column"] = 1 }
      if op == "insert" || pick(10) == 0 { columns["owner_id"] = .string(user()) }
      if op == "insert" { columns["n"] = columns["n"] ?? .int(pick(9)) }
    }
    if op == "update", pick(3) == 0, columns["n"] == nil {
      more["transforms"] =
        pick(2) == 0
        ? ["n": ["op": "increment", "by": .int(pick(5))]]
        : [
          "labels": ["op": .string(["arrayUnion", "arrayRemove"][pick(2)]), "values": [.string("l\(pick(3))"), "l1"]]
        ]
    }
    // An insert that breaks two rules is refused for either; the pack never tells by the reason that another's row is there.
    if op != "insert", pick(5) == 0 { more["precondition"] = ["title": .string("push \(pick(3))")] }
    return ServerPackTests.mutation(op, 1 + pick(6), columns, id: Name.id("f2", nextMutation), more)
  }

  // MARK: Comparing

  private static func compare(_ request: JSONValue, _ expected: JSONValue, _ answer: JSONValue) -> String? {
    let left = masked(expected)
    let right = masked(answer)
    guard left != right else { return nil }
    return "\(JSONWriter.text(request))\nmodel: \(JSONWriter.text(left))\npack:  \(JSONWriter.text(right))"
  }

  private static func masked(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let elements): return .array(elements.map(masked))
    case .object(let members):
      return .object(
        members.reduce(into: [:]) { result, member in
          switch member.key {
          case "seq", "deleted_at": result[member.key] = "…"
          case "cursor": result[member.key] = .bool(member.value.stringValue?.contains(":") == true)
          default: result[member.key] = masked(member.value)
          }
        })
    default: return value
    }
  }
}
