#if Postgres
  import Foundation
  import HostKit
  import KizunaDoorbell
  import KizunaSync
  import PostgresTestSupport
  import Testing

  /// Two gateways and SQL sessions write to one table of a real database; in the end all have the same rows.
  @Suite(.enabled(if: PostgresInstallation.isPresent), .timeLimit(.minutes(5)))
  struct ConvergenceTests {
    private func configuration(_ served: ServedDatabase, _ file: String) throws -> GatewayConfiguration {
      var configuration = GatewayConfiguration(
        url: try ServerURL(served.stack.url),
        publishableKey: ConfigurationSecret(literal: served.stack.publishableKey), database: file,
        tables: [
          "todos": TableDeclaration(bucket: .owner(column: "owner_id"), columns: ["title": .text, "n": .numeric])
        ],
        session: .password(email: ServedDatabase.ann, password: ConfigurationSecret(literal: "pw")))
      // Nothing but a ring brings a row over in time.
      configuration.pollInterval = .seconds(3_600)
      return configuration
    }

    private func rows(_ gateway: Gateway) async throws -> [String: String] {
      let rows = try await gateway.client.from("todos").select().execute() as? [[String: Any]] ?? []
      return Dictionary(
        rows.compactMap { row in (row["id"] as? String).map { ($0, row["title"] as? String ?? "") } },
        uniquingKeysWith: { $1 })
    }

    /// Waits until the gateway has a row with that title.
    private func wait(_ gateway: Gateway, for title: String) async throws {
      let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
      let end = gateway.scheduler.onHealth { _ in continuation.yield() }
      defer { end() }
      continuation.yield()
      for await _ in changes where try await rows(gateway).values.contains(title) { return }
    }

    @Test func gatewaysAndSQLSessionsConverge() async throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("kizuna-\(UUID().uuidString)").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try await ServedDatabase.with { served in
        let gateways = try [
          Gateway(configuration(served, folder + "/a.db")), Gateway(configuration(served, folder + "/b.db")),
        ]
        for gateway in gateways {
          try await gateway.start()
          for await status in gateway.connection.statusUpdates where status.isReady { break }
        }
        let owner = served.id(ServedDatabase.ann)
        let session = try served.database.session()
        for n in 1...10 {
          try await session.run("insert into public.todos (owner_id, title) values ('\(owner)', 'sql \(n)')")
          try await gateways[n % 2].client.from("todos").insert(["title": "gateway \(n)"])
          for gateway in gateways {
            try await wait(gateway, for: "sql \(n)")
            try await wait(gateway, for: "gateway \(n)")
          }
        }
        // A long transaction commits behind a later one.
        let late = try served.database.session()
        try await late.run("begin; select 1 from pg_class limit 1")
        try await session.run("delete from public.todos where title in ('sql 1', 'gateway 1')")
        try await late.run("insert into public.todos (owner_id, title) values ('\(owner)', 'late'); commit")
        try await session.run("update public.todos set title = 'last' where title = 'sql 2'")
        for gateway in gateways {
          try await wait(gateway, for: "late")
          try await wait(gateway, for: "last")
        }
        let server = try await served.database.run("select id || '=' || title from public.todos order by 1")
        for gateway in gateways {
          #expect(try await rows(gateway).map { "\($0)=\($1)" }.sorted() == server)
          await gateway.stop()
        }
        #expect(server.count == 19)
        await session.end()
        await late.end()
      }
    }
  }
#endif
