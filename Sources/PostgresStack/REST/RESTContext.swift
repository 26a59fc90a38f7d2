#if Postgres
  import HostKit
  import LocalStack
  import SyncServer

  /// Who asks for what, as the settings of the transaction that answers.
  struct RESTContext: Sendable {
    /// The database role of the caller.
    let role: String
    let claims: [String: JSONValue]
    let method: String
    /// As PostgREST sees it: behind the gateway's prefix.
    let path: String
    let headers: [StackHeader]

    var isAnonymous: Bool { role == Self.anonymous }

    static let anonymous = "anon"

    /// - Parameters:
    ///   - path: what follows `/rest/v1`.
    ///   - now: seconds since 1970.
    init(_ request: StackRequest, path: String, tokens: StackTokens, now: Int64) throws(RESTError) {
      do throws(RPCError) {
        claims = try Self.claims(of: request, tokens, now: now) ?? ["role": .string(Self.anonymous)]
      } catch {
        throw RESTError(error)
      }
      role = claims["role"]?.stringValue ?? Self.anonymous
      method = request.method
      self.path = path
      headers = request.headers
    }

    /// A hosted gateway takes the publishable key for an anonymous token.
    private static func claims(
      of request: StackRequest, _ tokens: StackTokens, now: Int64
    ) throws(RPCError) -> [String: JSONValue]? {
      if let bearer = request.bearerToken, bearer.hasPrefix("sb_publishable_") { return nil }
      return try tokens.claims(of: request, now: now)
    }

    /// The first statement of the transaction: settings that end with it.
    ///
    /// - Parameter schema: where names without a schema are looked up first.
    func settings(schema: String) -> PostgresStatement {
      var names: [String: JSONValue] = [:]
      for header in headers { names[header.name.lowercased()] = .string(header.value) }
      let path = ([schema] + ["public", "extensions"].filter { $0 != schema }).map(PostgresStatement.quoted)
      return PostgresStatement(
        """
        SELECT set_config('search_path', $1, true), set_config('role', $2, true),
          set_config('request.jwt.claims', $3, true), set_config('request.method', $4, true),
          set_config('request.path', $5, true), set_config('request.headers', $6, true),
          set_config('request.cookies', '{}', true)
        """,
        [
          path.joined(separator: ", "), role, JSONWriter.text(.object(claims)), method, self.path,
          JSONWriter.text(.object(names)),
        ])
    }
  }
#endif
