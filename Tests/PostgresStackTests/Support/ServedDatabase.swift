#if Postgres
  import HTTPClient
  import HostKit
  import LocalStack
  import PostgresTestSupport
  import Testing

  @testable import PostgresStack

  /// A database with the foreign pack, and the server before it.
  struct ServedDatabase: Sendable {
    let database: TestDatabase
    let stack: PostgresStack
    let http = CurlHTTPClient()

    static let ann = "ann@example.com"
    static let bob = "bob@example.com"

    struct Answer: Sendable {
      let status: Int
      let json: JSONValue
      let headers: [HTTPHeader]

      func header(_ name: String) -> String? { headers.first { $0.name.lowercased() == name }?.value }
    }

    static func with(
      _ setUp: String..., change: (inout LocalStackConfiguration) -> Void = { _ in },
      _ body: (ServedDatabase) async throws -> Void
    ) async throws {
      let scaffolding = String(decoding: PackageResources.scaffolding_sql, as: UTF8.self)
      try await PostgresCluster.shared.withDatabase(
        template: "foreign_pack", setUp: [scaffolding, ForeignPack.sql]
      ) { database in
        for text in setUp { try await database.run(text) }
        var configuration = LocalStackConfiguration(
          tables: [:], users: [.init(email: ann, password: "pw"), .init(email: bob, password: "pw")],
          jwtSecret: "a secret of sufficient length for tests")
        change(&configuration)
        var options = PostgresStack.Options()
        options.server.realtime.channelErrorBackoff = 0
        let stack = try await PostgresStack.start(PostgresAddress(database.url()), configuration, options: options)
        do {
          try await body(ServedDatabase(database: database, stack: stack))
          await stack.stop()
        } catch {
          await stack.stop()
          throw error
        }
      }
    }

    func id(_ email: String) -> String { stack.users.first { $0.email == email }?.id ?? "" }

    func send(
      _ method: String, _ path: String, _ body: JSONValue? = nil, bearer: String? = nil,
      headers: [String: String] = [:]
    ) async throws -> Answer {
      try await send(method, path, bytes: body.map { JSONWriter.data($0) }, bearer: bearer, headers: headers)
    }

    func send(
      _ method: String, _ path: String, bytes: [UInt8]?, bearer: String? = nil, headers: [String: String] = [:]
    ) async throws -> Answer {
      var all = ["apikey": stack.publishableKey, "Content-Type": "application/json"]
      if let bearer { all["Authorization"] = "Bearer \(bearer)" }
      for (name, value) in headers { all[name] = value }
      let response = try await http.send(
        HTTPRequest(
          method: method, url: stack.url + path, headers: all.map { HTTPHeader($0.key, $0.value) }, body: bytes ?? []))
      return Answer(
        status: response.status, json: (try? JSONValue(parsing: response.body)) ?? .null, headers: response.headers)
    }

    /// Calls a function of schema `kizunasync`.
    func call(
      _ function: String, _ body: JSONValue, bearer: String?, headers: [String: String] = [:]
    ) async throws -> Answer {
      try await send(
        "POST", "/rest/v1/rpc/\(function)", body, bearer: bearer,
        headers: ["Content-Profile": "kizunasync"].merging(headers) { $1 })
    }

    func signIn(_ email: String = ServedDatabase.ann) async throws -> String {
      let answer = try await send(
        "POST", "/auth/v1/token?grant_type=password", ["email": .string(email), "password": "pw"])
      return try #require(answer.json["access_token"]?.stringValue)
    }

    /// A token with other claims, signed by the stack's secret.
    func token(_ claims: [String: JSONValue], lifetime: Int64 = 3600) -> String {
      let now = SystemClock.shared.wallMilliseconds / 1000
      return TestJWT.sign(claims.merging(["exp": .int(now + lifetime)]) { $1 }, secret: stack.jwtSecret)
    }
  }
#endif
