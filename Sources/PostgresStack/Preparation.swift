#if Postgres
  import HostKit
  import LocalStack
  import SyncServer

  /// What a database needs before it is served: the parts of Supabase that a plain PostgreSQL lacks, users, tables.
  struct Preparation: Sendable {
    let connection: PostgresConnection

    /// What was found of Supabase's own schemas.
    private enum Found { case nothing, ours, foreign }

    private func found() async throws(PostgresError) -> Found {
      let rows = try await connection.run(
        PostgresStatement(
          "SELECT to_regclass('realtime.messages') IS NOT NULL, to_regprocedure('realtime.announce_message()') IS NOT NULL"
        ))
      if rows.text(0, 1) == "t" { return .ours }
      return rows.text(0, 0) == "t" ? .foreign : .nothing
    }

    /// Applies the scaffolding to a database without Supabase's schemas.
    ///
    /// - Throws: `PostgresStackError.foreignSchemas` for one that has others than ours.
    func scaffold() async throws {
      if try await found() == .foreign { throw PostgresStackError.foreignSchemas }
      let script = String(decoding: PackageResources.scaffolding_sql, as: UTF8.self)
      do throws(PostgresError) {
        // Two servers may start on one database.
        try await connection.script(
          "BEGIN; SELECT pg_advisory_xact_lock(hashtext('kizuna-localstack'));\n\(script)\nCOMMIT")
      } catch {
        try? await connection.script("ROLLBACK")
        throw error
      }
    }

    /// Looks whether the sessions that serve requests can become the roles of the requests' tokens.
    ///
    /// - Throws: `PostgresStackError.roles` when not.
    func checkRoles() async throws {
      let rows = try await connection.run(
        PostgresStatement(
          """
          WITH login AS (
            SELECT CASE WHEN current_setting('is_superuser') = 'on' AND to_regrole('authenticator') IS NOT NULL
              THEN 'authenticator' ELSE current_user END AS name,
              CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END AS privilege)
          SELECT l.name, w.name, r.oid IS NULL
          FROM login l CROSS JOIN (VALUES ('anon'), ('authenticated')) AS w (name)
            LEFT JOIN pg_catalog.pg_roles r ON r.rolname = w.name
          WHERE r.oid IS NULL OR NOT pg_has_role(l.name, r.oid, l.privilege) ORDER BY w.name
          """))
      guard rows.count > 0 else { return }
      let names = (0..<rows.count).map { (name: rows.text($0, 1) ?? "", isAbsent: rows.text($0, 2) == "t") }
      throw PostgresStackError.roles(
        login: rows.text(0, 0) ?? "", absent: names.filter(\.isAbsent).map(\.name),
        forbidden: names.filter { !$0.isAbsent }.map(\.name))
    }

    /// Whether row-level security hides rows of `realtime.messages` from this session, so that it cannot pass them on.
    func hidesMessages() async throws(PostgresError) -> Bool {
      let rows = try await connection.run(
        PostgresStatement(
          "SELECT row_security_active(c.oid) FROM (SELECT to_regclass('realtime.messages') AS oid) AS c"))
      return rows.text(0, 0) == "t"
    }

    /// Whether rows of `realtime.messages` are announced.
    func announcesMessages() async throws(PostgresError) -> Bool { try await found() == .ours }

    /// The secret that tokens are signed with, kept in the database where no client may look.
    func secret() async throws(PostgresError) -> String {
      try await connection.script(
        """
        BEGIN; SELECT pg_advisory_xact_lock(hashtext('kizuna-localstack'));
        CREATE SCHEMA IF NOT EXISTS kizuna_localstack;
        CREATE TABLE IF NOT EXISTS kizuna_localstack.settings (name text PRIMARY KEY, value text NOT NULL);
        REVOKE ALL ON kizuna_localstack.settings FROM PUBLIC;
        COMMIT
        """)
      let rows = try await connection.run(
        PostgresStatement(
          """
          WITH made AS (
            INSERT INTO kizuna_localstack.settings (name, value) VALUES ('jwt_secret', $1)
            ON CONFLICT (name) DO NOTHING RETURNING value)
          SELECT value FROM made UNION ALL SELECT value FROM kizuna_localstack.settings WHERE name = 'jwt_secret'
          """, [Base64.encode(Digest.random(32), .url)]))
      return rows.text(0, 0) ?? ""
    }

    /// Makes the tables of a configuration that are not there, with row policies; leaves all others alone.
    ///
    /// - Parameter declarations: their columns, as far as a file declares them.
    /// - Throws: `PostgresStackError.column` when a table that is there lacks its bucket or a key column.
    func makeTables(
      _ tables: [String: SyncTable], _ declarations: [String: TableDeclaration]
    ) async throws {
      for (name, table) in tables.sorted(by: { $0.key < $1.key }) {
        let rows = try await connection.run(
          PostgresStatement(
            """
            SELECT c.oid IS NULL, w.name
            FROM (SELECT to_regclass($1) AS oid) AS c
              LEFT JOIN unnest($2::text[]) AS w (name) ON NOT EXISTS (
                SELECT FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = c.oid AND a.attname = w.name AND a.attnum > 0 AND NOT a.attisdropped)
            """,
            [
              "public." + PostgresStatement.quoted(name),
              "{" + (table.keyColumns + (table.bucketColumn.map { [$0] } ?? [])).joined(separator: ",") + "}",
            ]))
        guard rows.text(0, 0) == "t" else {
          if let column = rows.text(0, 1) { throw PostgresStackError.column(table: name, column: column) }
          continue
        }
        try await connection.script(TableDefinition(name, table, declarations[name]).sql)
      }
    }
  }
#endif
