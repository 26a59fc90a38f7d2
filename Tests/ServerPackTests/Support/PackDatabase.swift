import HostKit
import PostgresTestSupport
import ServerPack

/// A database of its own with the Supabase scaffolding and the server pack.
struct PackDatabase: Sendable {
  let database: TestDatabase

  static let package = String(#filePath.prefix(upTo: #filePath.range(of: "/Tests/ServerPackTests/")))

  static func scaffolding() throws -> String {
    try HostFile.readText(package + "/Sources/PostgresStack/Resources/scaffolding.sql")
  }

  static func with<Result: Sendable>(_ body: (PackDatabase) async throws -> Result) async throws -> Result {
    try await PostgresCluster.shared.withDatabase(
      template: "server_pack", setUp: [scaffolding(), ServerPack.migration]
    ) { try await body(PackDatabase(database: $0)) }
  }

  @discardableResult
  func sql(_ text: String) async throws -> [String] { try await database.run(text) }

  /// Calls `pull` or `push` as PostgREST would: with the role and the claims of a token, arguments by name.
  func call(_ function: String, _ request: JSONValue, as user: String, role: String = "authenticated") async throws
    -> JSONValue
  {
    let rows = try await database.run(Self.callText(function, request, as: user, role: role))
    return try JSONValue(parsing: rows.joined(separator: "\n"))
  }

  static func callText(_ function: String, _ request: JSONValue, as user: String, role: String = "authenticated")
    -> String
  {
    let claims = JSONWriter.text(["sub": .string(user), "role": .string(role)])
    let arguments = (request.objectValue ?? [:]).sorted { $0.key < $1.key }.map { name, value in
      "\"\(name)\" => \(argument(value))::\(types[name] ?? "text")"
    }
    return """
      begin;
      set local role \(role);
      select set_config('request.jwt.claims', \(quoted(claims)), true) \\g /dev/null
      select kizunasync.\(function)(\(arguments.joined(separator: ", ")));
      commit;
      """
  }

  private static let types = [
    "buckets": "jsonb", "batch": "jsonb", "cursor": "text", "schema_version": "integer", "limit": "integer",
    "client_id": "uuid", "last_mutation_id": "uuid",
  ]

  private static func argument(_ value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .string(let text): quoted(text)
    default: quoted(JSONWriter.text(value))
    }
  }

  static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
  }
}

extension PackDatabase {
  /// A table that each user sees the own rows of.
  static let todos = """
    create table public.todos (
      id uuid primary key default gen_random_uuid(), owner_id uuid not null, title text, n integer default 0,
      done boolean, labels text[]);
    create index on public.todos (owner_id);
    alter table public.todos enable row level security;
    create policy own on public.todos to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));

    """

  static func withTodos<Result: Sendable>(
    _ options: String = "", _ body: (PackDatabase) async throws -> Result
  ) async throws -> Result {
    try await with { pack in
      try await pack.sql(todos + "select kizunasync.sync_table('todos', bucket_column => 'owner_id' \(options));")
      return try await body(pack)
    }
  }

  func pull(_ user: String, _ cursor: String = "0", limit: Int? = nil, table: String = "todos") async throws
    -> JSONValue
  {
    var request: [String: JSONValue] = [
      "buckets": [["table": .string(table), "params": ["owner_id": .string(user)]]], "cursor": .string(cursor),
      "schema_version": 1,
    ]
    if let limit { request["limit"] = .int(limit) }
    return try await call("pull", .object(request), as: user)
  }

  /// The cursor that clients have after so many seqs, which begin beyond those of any other log.
  func cursor(_ seqs: Int64) async throws -> String {
    try await sql(
      "select kizunasync.notice_place() \\g /dev/null\nselect base + \(seqs) from kizunasync.horizon")[0]
  }

  func push(_ user: String, atomic: Bool = false, _ mutations: JSONValue...) async throws -> JSONValue {
    try await call("push", Self.request(atomic: atomic, mutations), as: user)
  }

  static func request(atomic: Bool = false, _ mutations: [JSONValue]) -> JSONValue {
    [
      "batch": ["atomic": .bool(atomic), "mutations": .array(mutations)], "last_mutation_id": nil, "schema_version": 1,
    ]
  }

  /// What was decided on the only mutation of a push.
  func verdict(_ user: String, _ mutation: JSONValue) async throws -> Verdict {
    let answer = try await push(user, mutation)
    let verdict = answer["verdicts"]?[0]
    return Verdict(
      verdict: verdict?["verdict"]?.stringValue ?? JSONWriter.text(answer), reason: verdict?["reason"]?.stringValue,
      row: verdict?["server_row"] ?? .null)
  }
}

struct Verdict: Equatable, CustomStringConvertible {
  var verdict: String
  var reason: String?
  var row: JSONValue

  static let applied = Verdict(verdict: "applied", reason: nil, row: .null)

  static func rejected(_ reason: String, row: JSONValue = .null) -> Verdict {
    Verdict(verdict: "rejected", reason: reason, row: row)
  }

  /// The same without the row.
  var bare: Verdict { Verdict(verdict: verdict, reason: reason, row: .null) }

  var description: String { "\(verdict) \(reason ?? "") \(JSONWriter.text(row))" }
}

/// Names of the tests' users, rows and mutations.
enum Name {
  static let ann = "00000000-0000-4000-8000-a10000000001"
  static let bob = "00000000-0000-4000-8000-a10000000002"

  static func row(_ n: Int) -> String { id("e1", n) }

  static func id(_ kind: String, _ n: Int) -> String {
    let digits = String(n)
    return "00000000-0000-4000-8000-\(kind)" + String(repeating: "0", count: 10 - digits.count) + digits
  }

  private static let count = Locked(0)

  static func mutation() -> String {
    id(
      "f1",
      count.withLock {
        $0 += 1; return $0
      })
  }
}

/// A mutation on `todos`.
func mutation(
  _ op: String, _ row: Int, _ columns: [String: JSONValue] = [:], table: String = "todos", id: String = Name.mutation(),
  _ more: [String: JSONValue] = [:]
) -> JSONValue {
  let members: [String: JSONValue] = [
    "mutation_id": .string(id), "table": .string(table), "pk": .string(Name.row(row)), "op": .string(op),
    "columns": .object(columns),
  ]
  return .object(members.merging(more) { $1 })
}

extension String {
  /// Where a text first stands.
  func range(of text: String) -> Index {
    indices.first { self[$0...].hasPrefix(text) } ?? endIndex
  }
}
