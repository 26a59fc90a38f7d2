#if Postgres
  import HostKit
  import LocalStack

  /// Users, sessions and refresh tokens in the tables of schema `auth`, which Supabase's auth service has too.
  struct PostgresAuthStore: AuthStore {
    private let connection: PostgresConnection

    /// - Parameter connection: a session of a role that may read and write these tables; used for one thing at a time.
    init(_ connection: PostgresConnection) {
      self.connection = connection
    }

    func user(email: String, password: String) async throws -> StackUser? {
      // A password is stretched for nobody, too, so that the time does not tell who exists.
      let rows = try await connection.run(
        PostgresStatement(
          """
          SELECT u.id, u.email, u.deleted_at IS NULL AND coalesce(u.banned_until < now(), true),
            extensions.crypt($2, coalesce(u.encrypted_password, extensions.gen_salt('bf', 8))) = u.encrypted_password
          FROM (VALUES (lower($1))) AS given (email) LEFT JOIN auth.users u ON lower(u.email) = given.email
          """, [email, password]))
      guard let id = rows.text(0, 0), rows.text(0, 2) == "t", rows.text(0, 3) == "t" else { return nil }
      return StackUser(id: id, email: rows.text(0, 1) ?? "")
    }

    func user(id: String) async throws -> StackUser? {
      // Compared as texts: a subject need not be a uuid.
      let rows = try await connection.run(
        PostgresStatement("SELECT id, email FROM auth.users WHERE id::text = lower($1) AND deleted_at IS NULL", [id]))
      return rows.text(0, 0).map { StackUser(id: $0, email: rows.text(0, 1) ?? "") }
    }

    func begin(session: String, of user: String, token: String, now: Int64) async throws {
      _ = try await connection.transaction(
        [
          PostgresStatement(
            "INSERT INTO auth.sessions (id, user_id, created_at, updated_at) "
              + "VALUES ($1, $2, to_timestamp($3::bigint), to_timestamp($3::bigint))", [session, user, "\(now)"]),
          PostgresStatement("UPDATE auth.users SET last_sign_in_at = now() WHERE id = $1", [user]),
          Self.insert(token, RefreshToken(session: session, parent: nil, changedAt: now)),
        ])
    }

    func refresh(
      _ token: String, newToken: String, now: Int64, reuseInterval: Int64
    ) async throws -> AuthState.Refresh {
      // Nothing comes in between: the connection serves one caller at a time, and this stack is the only writer.
      try await connection.refresh { connection in
        let rows = try connection.run(
          PostgresStatement(
            """
            SELECT t.token, t.session_id, s.user_id, t.parent, t.revoked, extract(epoch FROM t.updated_at)::bigint
            FROM auth.refresh_tokens t JOIN auth.sessions s ON s.id = t.session_id
            WHERE t.session_id = (SELECT session_id FROM auth.refresh_tokens WHERE token = $1)
              AND (t.token = $1 OR NOT t.revoked)
            """, [token]))
        var state = AuthState()
        for row in 0..<rows.count {
          guard let text = rows.text(row, 0), let session = rows.text(row, 1), let user = rows.text(row, 2) else {
            continue
          }
          state.apply(.session(id: session, user: user))
          state.apply(
            .token(
              text,
              RefreshToken(
                session: session, parent: rows.text(row, 3).flatMap { $0.isEmpty ? nil : $0 },
                isRevoked: rows.text(row, 4) == "t", changedAt: rows.text(row, 5).flatMap { Int64($0) } ?? 0)))
        }
        let (outcome, changes) = state.refresh(token, newToken: newToken, now: now, reuseInterval: reuseInterval)
        let statements = changes.map { change -> PostgresStatement in
          switch change {
          case .token(let text, let token) where text == newToken: return Self.insert(text, token)
          case .token(let text, let token):
            return PostgresStatement(
              "UPDATE auth.refresh_tokens SET revoked = $2, updated_at = to_timestamp($3::bigint) WHERE token = $1",
              [text, token.isRevoked ? "t" : "f", "\(token.changedAt)"])
          case .ended(let session): return PostgresStatement("DELETE FROM auth.sessions WHERE id = $1", [session])
          case .session: return PostgresStatement("SELECT 1")
          }
        }
        if !statements.isEmpty { _ = try connection.transaction(statements) }
        return outcome
      }
    }

    func end(_ sessions: AuthEnding, of user: String) async throws {
      let statement =
        switch sessions {
        case .only(let session):
          PostgresStatement("DELETE FROM auth.sessions WHERE user_id = $1 AND id::text = $2", [user, session])
        case .allBut(let session):
          PostgresStatement(
            "DELETE FROM auth.sessions WHERE user_id = $1 AND id::text IS DISTINCT FROM $2", [user, session])
        case .all: PostgresStatement("DELETE FROM auth.sessions WHERE user_id = $1", [user])
        }
      _ = try await connection.run(statement)
    }

    private static func insert(_ text: String, _ token: RefreshToken) -> PostgresStatement {
      PostgresStatement(
        """
        INSERT INTO auth.refresh_tokens (token, session_id, user_id, parent, revoked, created_at, updated_at)
        SELECT $1, s.id, s.user_id, $3, $4, to_timestamp($5::bigint), to_timestamp($5::bigint)
        FROM auth.sessions s WHERE s.id = $2
        """,
        [text, token.session, token.parent, token.isRevoked ? "t" : "f", "\(token.changedAt)"])
    }

    /// Makes the users that are not there yet, and gives all of them their configured passwords.
    ///
    /// - Returns: them, sorted by email.
    func add(_ users: [LocalStackConfiguration.User]) async throws -> [StackUser] {
      var added: [StackUser] = []
      for user in users {
        let new = StackUser(email: user.email)
        let parameters: [String?] = [new.id, new.email, user.password]
        let rows = try await connection.run(
          PostgresStatement(
            """
            WITH given AS (SELECT extensions.crypt($3, extensions.gen_salt('bf', 8)) AS password),
              changed AS (
                UPDATE auth.users u SET encrypted_password = g.password, updated_at = now()
                FROM given g WHERE lower(u.email) = $2 RETURNING u.id, u.email),
              made AS (
                INSERT INTO auth.users (
                  id, instance_id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data,
                  raw_user_meta_data, created_at, updated_at)
                SELECT $1, '00000000-0000-0000-0000-000000000000', 'authenticated', 'authenticated', $2, g.password,
                  now(), '{"provider": "email", "providers": ["email"]}', '{}', now(), now()
                FROM given g WHERE NOT EXISTS (SELECT FROM changed) RETURNING id, email)
            SELECT id, email FROM changed UNION ALL SELECT id, email FROM made
            """, parameters))
        added.append(StackUser(id: rows.text(0, 0) ?? new.id, email: rows.text(0, 1) ?? new.email))
      }
      return added.sorted { $0.email < $1.email }
    }
  }

  extension PostgresConnection {
    /// Several calls with nothing in between.
    fileprivate func refresh<Value: Sendable>(
      _ body: @Sendable (isolated PostgresConnection) throws -> Value
    ) throws -> Value {
      try body(self)
    }
  }
#endif
