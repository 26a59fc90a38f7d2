#if Postgres
  import HostKit
  import LocalStack
  import PostgresTestSupport
  import SyncServer
  import Testing

  @testable import PostgresStack

  /// What a database must have before it is served; what is missing is said at the start, and not with every request.
  @Suite(.enabled(if: PostgresInstallation.isPresent), .timeLimit(.minutes(5)))
  struct PreparationTests {
    private static func with(_ body: (TestDatabase) async throws -> Void) async throws {
      let scaffolding = String(decoding: PackageResources.scaffolding_sql, as: UTF8.self)
      try await PostgresCluster.shared.withDatabase(template: "scaffolded", setUp: [scaffolding]) { try await body($0) }
    }

    private static func start(
      _ database: TestDatabase, user: String = "postgres", _ tables: [String: SyncTable] = [:]
    ) async throws {
      var options = PostgresStack.Options()
      options.appliesScaffolding = false
      let configuration = LocalStackConfiguration(
        tables: tables, jwtSecret: "a secret of sufficient length for tests")
      let stack = try await PostgresStack.start(
        PostgresAddress(database.url(user: user)), configuration, options: options)
      await stack.stop()
    }

    @Test func aLoginThatMayNotBecomeTheCallersRoles() async throws {
      try await Self.with { database in
        let login = "plain_\(database.name)"
        try await database.run("create role \(login) login nosuperuser; grant authenticated to \(login)")
        let error = PostgresStackError.roles(login: login, absent: [], forbidden: ["anon"])
        #expect(error.description.hasSuffix("GRANT anon TO \"\(login)\""))
        await #expect(throws: error) { try await Self.start(database, user: login) }
        try await database.run("grant anon to \(login)")
        try await Self.start(database, user: login)
        // It serves, and is told that it sees no message to pass on.
        let preparation = Preparation(connection: PostgresConnection(try PostgresAddress(database.url(user: login))))
        #expect(try await preparation.hidesMessages())
        await preparation.connection.close()
        let owner = Preparation(connection: PostgresConnection(try PostgresAddress(database.url())))
        #expect(try await !owner.hidesMessages())
        await owner.connection.close()
        try await database.run("drop role \(login)")
      }
    }

    @Test func aTableThatIsThereLacksAColumn() async throws {
      try await Self.with { database in
        try await database.run("create table public.todos (id uuid primary key, owner_id uuid)")
        try await Self.start(database, ["todos": SyncTable(bucketColumn: "owner_id")])
        for (table, column) in [
          (SyncTable(bucketColumn: "nosuch"), "nosuch"), (SyncTable(keyColumns: ["hall"]), "hall"),
        ] {
          await #expect(throws: PostgresStackError.column(table: "todos", column: column)) {
            try await Self.start(database, ["todos": table])
          }
        }
      }
    }
  }
#endif
