#if Postgres
  import HostKit
  import LocalStack

  /// Requests below `/rest/v1/`, as PostgREST answers them: one transaction a request, under the caller's role.
  struct RESTService: Sendable {
    let pool: PostgresPool
    let catalogue: Catalogue
    let tokens: StackTokens
    /// The first is the one that is meant where a request names none.
    let schemas: [String]
    let wallMilliseconds: @Sendable () -> Int64

    /// - Parameter path: what follows `/rest/v1`, percent-encoded.
    func handle(_ request: StackRequest, path: String) async -> StackResponse {
      do throws(RESTError) {
        let context = try RESTContext(request, path: path, tokens: tokens, now: wallMilliseconds() / 1000)
        let parts = path.split(separator: "/").map { PercentCoding.decode($0) }
        let schema = try schema(of: request)
        switch parts.count {
        case 2 where parts[0] == "rpc":
          return try await call(request, Catalogue.Name(schema: schema, name: parts[1]), context)
        case 1 where parts[0] != "rpc":
          return try await table(request, Catalogue.Name(schema: schema, name: parts[0]), context)
        default: throw RESTError(404, "PGRST125", "Invalid path specified in request URL")
        }
      } catch {
        return error.response()
      }
    }

    private func schema(of request: StackRequest) throws(RESTError) -> String {
      let isRead = request.method == "GET" || request.method == "HEAD"
      guard let profile = request.header(isRead ? "accept-profile" : "content-profile") else { return schemas[0] }
      guard schemas.contains(profile) else {
        throw RESTError(
          406, "PGRST106", "The schema must be one of the following: \(schemas.joined(separator: ", "))")
      }
      return profile
    }

    /// The body of a request that has one.
    func body(of request: StackRequest) throws(RESTError) -> JSONValue {
      let type = request.header("content-type")?.prefix { $0 != ";" } ?? "application/json"
      guard type.lowercased() == "application/json" else {
        throw RESTError(415, "PGRST102", "Content-Type not acceptable: \(type)")
      }
      guard let body = try? JSONValue(parsing: request.body) else {
        throw RESTError(400, "PGRST102", "Empty or invalid json")
      }
      return body
    }

    /// One transaction under the caller's role.
    ///
    /// - Returns: the statement's rows, and when the end of the transaction was known.
    func run(
      _ statement: PostgresStatement, _ context: RESTContext, schema: String
    ) async throws(PostgresError) -> (rows: PostgresRows, endedAt: UInt64) {
      let (rows, endedAt) = try await pool.transaction([context.settings(schema: schema), statement])
      return (rows[1], endedAt)
    }

    // MARK: Functions

    private func call(
      _ request: StackRequest, _ name: Catalogue.Name, _ context: RESTContext
    ) async throws(RESTError) -> StackResponse {
      guard request.method == "POST" else {
        throw RESTError(405, "PGRST101", "Cannot use the \(request.method) method on RPC")
      }
      let body = request.body.isEmpty ? [:] : try body(of: request)
      let names = Set((body.objectValue ?? [:]).keys)
      let text = request.body.isEmpty ? "{}" : String(decoding: request.body, as: UTF8.self)
      do throws(PostgresError) {
        do throws(PostgresError) {
          return try await answer(name, names, body, text, context)
        } catch {
          // A function that was replaced by one with other types since it was looked up; nothing has happened yet.
          guard ["42883", "42704"].contains(error.code) else { throw error }
          catalogue.forget()
          return try await answer(name, names, body, text, context)
        }
      } catch {
        throw RESTError(error, isAnonymous: context.isAnonymous)
      }
    }

    private func answer(
      _ name: Catalogue.Name, _ names: Set<String>, _ body: JSONValue, _ text: String, _ context: RESTContext
    ) async throws(PostgresError) -> StackResponse {
      let isObject = body.objectValue != nil
      let found = try await catalogue.functions(name) { isObject && $0.takes(names) || $0.takesWholeBody }
      let named = found.filter { isObject && $0.takes(names) }
      guard let function = named.first ?? found.first else { return Self.noFunction(name, names).response() }
      guard named.count < 2 else { return Self.tooManyFunctions(name, names).response() }
      let statement = function.call(name.quoted, named.isEmpty ? [] : names, body: text)
      let (rows, endedAt) = try await run(statement, context, schema: name.schema)
      if function.result == .nothing { return StackResponse(status: 204, headers: Self.times(endedAt)) }
      return StackResponse(
        status: 200, headers: [Self.jsonType] + Self.times(endedAt), body: rows.bytes(0, 0) ?? Array("null".utf8))
    }

    static let jsonType = StackHeader("content-type", "application/json; charset=utf-8")

    /// When the transaction was known to be committed, for measurements on this machine.
    static func times(_ endedAt: UInt64) -> [StackHeader] {
      [StackHeader("x-localstack-committed-ns", String(endedAt))]
    }

    private static func noFunction(_ name: Catalogue.Name, _ names: Set<String>) -> RESTError {
      let list = names.sorted().joined(separator: ", ")
      let parameters =
        names.isEmpty
        ? "without parameters"
        : "with parameter\(names.count == 1 ? "" : "s") \(list) or with a single unnamed json/jsonb parameter"
      return RESTError(
        404, "PGRST202",
        "Could not find the function \(name.schema).\(name.name)\(names.isEmpty ? "" : "(\(list))") in the schema cache",
        details:
          "Searched for the function \(name.schema).\(name.name) \(parameters), but no matches were found in the "
          + "schema cache.")
    }

    private static func tooManyFunctions(_ name: Catalogue.Name, _ names: Set<String>) -> RESTError {
      RESTError(
        300, "PGRST203",
        "Could not choose the best candidate function between several named \(name.schema).\(name.name) that take: "
          + names.sorted().joined(separator: ", "),
        hint:
          "Try renaming the parameters or the function itself in the database so function overloading can be resolved"
      )
    }
  }
#endif
