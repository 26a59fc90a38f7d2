import Foundation
import HostKit
import SyncServer

@testable import LocalStack

/// A clock whose calendar a test sets. It is never waited on.
final class WallClock: HostClock {
  private let milliseconds: Locked<Int64>

  init(milliseconds: Int64 = 1_767_225_600_000) {
    self.milliseconds = Locked(milliseconds)
  }

  var now: UInt64 { UInt64(wallMilliseconds) * 1_000_000 }
  var wallMilliseconds: Int64 { milliseconds.withLock { $0 } }

  func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1000 } }

  func schedule(at deadline: UInt64, _ work: @escaping @Sendable () -> Void) -> any HostTimer { NoTimer() }

  private struct NoTimer: HostTimer {
    func cancel() {}
  }
}

/// Services with one table and one user, and shorthand for their requests.
struct ServiceFixture {
  static let email = "ada@example.com"
  static let password = "correct horse"

  let clock: WallClock
  let services: LocalStackServices
  let router: StackRouter

  init(directory: String? = nil, requiresAPIKey: Bool = true, clock: WallClock = WallClock()) throws {
    self.clock = clock
    services = try LocalStackServices(
      LocalStackConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)],
        users: [.init(email: Self.email, password: Self.password), .init(email: "bob@example.com", password: "b")],
        jwtSecret: directory == nil ? "a secret of sufficient length for tests" : nil, directory: directory,
        requiresAPIKey: requiresAPIKey), clock: clock)
    router = StackRouter(services)
  }

  var user: String { StackUser(email: Self.email).id }

  func send(
    _ method: String, _ path: String, query: String = "", _ body: JSONValue? = nil, bearer: String? = nil,
    headers: [String: String?] = [:]
  ) async -> StackResponse {
    var all: [String: String] = ["apikey": services.tokens.publishableKey, "Content-Type": "application/json"]
    if path.hasPrefix("/rest") { all["Content-Profile"] = "kizunasync" }
    if let bearer { all["Authorization"] = "Bearer \(bearer)" }
    for (name, value) in headers { all[name] = value }
    return await router.handle(
      StackRequest(
        method: method, path: path, query: query, headers: all.map { StackHeader($0.key, $0.value) },
        body: body.map { JSONWriter.data($0) } ?? []))
  }

  func signIn(password: String = ServiceFixture.password) async -> StackResponse {
    await send(
      "POST", "/auth/v1/token", query: "grant_type=password",
      ["email": .string(Self.email), "password": .string(password)])
  }

  func refresh(_ token: String) async -> StackResponse {
    await send("POST", "/auth/v1/token", query: "grant_type=refresh_token", ["refresh_token": .string(token)])
  }

  func accessToken(lifetime: Int64 = 3600) -> String {
    services.tokens.accessToken(subject: user, now: services.now, lifetime: lifetime)
  }

  var pull: JSONValue {
    ["buckets": [["table": "todos", "params": ["owner_id": .string(user)]]], "cursor": "0", "schema_version": 1]
  }

  func push(_ n: Int, title: String = "t") -> JSONValue {
    [
      "batch": [
        "atomic": false,
        "mutations": [
          [
            "mutation_id": .string("00000000-0000-4000-8000-\(0xF1_00_00_00_00_00 + n, radix: 16)"),
            "table": "todos", "pk": .string("k\(n)"), "op": "insert",
            "columns": ["owner_id": .string(user), "title": .string(title)],
          ]
        ],
      ], "last_mutation_id": nil, "schema_version": 1,
    ]
  }
}

extension String.StringInterpolation {
  fileprivate mutating func appendInterpolation(_ value: Int, radix: Int) {
    appendLiteral(String(value, radix: radix))
  }
}

extension StackResponse {
  var json: JSONValue { (try? JSONValue(parsing: body)) ?? .null }
}

/// A directory under the system's temporary one, removed by `remove`.
struct TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("kizuna-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
