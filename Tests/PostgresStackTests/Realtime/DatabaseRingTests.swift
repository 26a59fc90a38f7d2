#if Postgres
  import HostKit
  import PhoenixChannels
  import PostgresTestSupport
  import Testing

  @testable import PostgresStack

  /// Broadcasts of a real database: when they come, in which order, and who may hear them.
  @Suite(.enabled(if: PostgresInstallation.isPresent), .timeLimit(.minutes(5)))
  struct DatabaseRingTests {
    private static let todos = "kizunasync:todos"

    private func send(_ n: Int, private isPrivate: Bool = true) -> String {
      "select realtime.send(jsonb_build_object('n', \(n)), 'changed', '\(Self.todos)', \(isPrivate))"
    }

    private func ear(_ served: ServedDatabase) async throws -> SocketClient {
      let client = await SocketClient(served.stack.realtimeURL, key: served.stack.publishableKey)
      #expect(await client.join(Self.todos, token: try await served.signIn()) == "ok")
      return client
    }

    private func next(_ client: SocketClient) async -> Int? { await client.ring()?["n"]?.intValue }

    @Test func aCommitRingsAndARollbackDoesNot() async throws {
      try await ServedDatabase.with { served in
        let client = try await ear(served)
        let session = try served.database.session()
        try await session.run("begin; \(send(1)); rollback")
        try await session.run("begin; \(send(2)); savepoint s; \(send(3)); rollback to s; commit")
        try await session.run(send(4, private: false))
        try await session.run(send(5))
        #expect(await next(client) == 2)
        #expect(await next(client) == 5)
        await session.end()
        client.close()
      }
    }

    @Test func ringsComeInTheOrderOfTheCommits() async throws {
      try await ServedDatabase.with { served in
        let client = try await ear(served)
        let (first, second) = (try served.database.session(), try served.database.session())
        for n in stride(from: 0, to: 40, by: 4) {
          try await first.run("begin; \(send(n)); \(send(n + 1))")
          try await second.run("begin; \(send(n + 2)); \(send(n + 3)); commit")
          try await first.run("commit")
          var order: [Int?] = []
          for _ in 0..<4 { order.append(await next(client)) }
          #expect(order == [n + 2, n + 3, n, n + 1])
        }
        await first.end()
        await second.end()
        client.close()
      }
    }

    @Test func whatIsCommittedWhileTheSessionIsLostRingsOnce() async throws {
      try await ServedDatabase.with { served in
        let client = try await ear(served)
        try await served.database.run(send(0))
        #expect(await next(client) == 0)
        for round in 1...5 {
          // In one transaction, so that the message is committed while nobody listens.
          try await served.database.run(
            """
            begin;
            select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and application_name like '%realtime';
            \(send(2 * round)); commit
            """)
          try await served.database.run(send(2 * round + 1))
          #expect(await next(client) == 2 * round)
          #expect(await next(client) == 2 * round + 1)
        }
        client.close()
      }
    }

    @Test func requestsGoOnAfterTheServerEndedTheirSessions() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        #expect(try await served.send("GET", "/rest/v1/todos", bearer: token).status == 200)
        try await served.database.run(
          """
          select pg_terminate_backend(pid, 20000) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()
          """
        )
        #expect(try await served.send("GET", "/rest/v1/todos", bearer: token).status == 200)
        #expect(try await served.send("GET", "/auth/v1/user", bearer: token).status == 200)
        let client = try await ear(served)
        client.close()
      }
    }

    @Test func whileThereIsNoDatabaseRequestsSaySo() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        let client = try await ear(served)
        let other = try await PostgresCluster.shared.makeDatabase()
        // Sessions are ended, and no new ones are let in.
        try await other.run("alter database \(served.database.name) allow_connections false")
        try await other.run(
          "select pg_terminate_backend(pid, 20000) from pg_stat_activity where datname = '\(served.database.name)'")
        for _ in 1...3 {
          let answer = try await served.send("GET", "/rest/v1/todos", bearer: token)
          #expect((answer.status, answer.json["code"]) == (503, "PGRST000"))
          #expect(try await served.send("GET", "/auth/v1/user", bearer: token).status == 500)
        }
        #expect(
          await client.join(Self.todos, ref: "2", token: token)
            == "UnableToConnectToProject: Realtime was unable to connect to the project database")
        try await other.run("alter database \(served.database.name) allow_connections true")
        #expect(try await served.send("GET", "/rest/v1/todos", bearer: token).status == 200)
        #expect(await client.join(Self.todos, ref: "3", token: token) == "ok")
        try await served.database.run(send(1))
        #expect(await next(client) == 1)
        client.close()
        try await other.drop()
      }
    }

    @Test func policiesDecideWhoMayJoin() async throws {
      try await ServedDatabase.with(
        "create policy broken on realtime.messages for select to service_role using (1 / (realtime.topic() <> 'x')::int = 1)"
      ) { served in
        let client = await SocketClient(served.stack.realtimeURL, key: served.stack.publishableKey)
        func refusal(_ topic: String) -> String {
          "Unauthorized: You do not have permissions to read from this Channel topic: \(topic)"
        }
        #expect(await client.join(Self.todos, ref: "1") == refusal(Self.todos), "the key alone is nobody")
        let token = try await served.signIn()
        #expect(await client.join("private:room", ref: "2", token: token) == refusal("private:room"))
        #expect(await client.join(Self.todos, ref: "3", token: token) == "ok")
        let odd = served.token(["role": "no such role"])
        #expect(await client.join(Self.todos, ref: "4", token: odd) == refusal(Self.todos))
        client.close()
        // The probes are gone.
        #expect(try await served.database.run("select count(*) from realtime.messages") == ["0"])
      }
    }

    @Test func aClientWithoutAPolicyForItRingsNobody() async throws {
      try await ServedDatabase.with { served in
        let client = try await ear(served)
        let other = try await ear(served)
        let payload: JSONValue = ["type": "broadcast", "event": "changed", "payload": ["n": 1]]
        other.send(
          PhoenixFrame(joinRef: "1", ref: "9", topic: "realtime:" + Self.todos, event: "broadcast", payload))
        let batch = try await served.send(
          "POST", "/realtime/v1/api/broadcast",
          ["messages": [["topic": .string(Self.todos), "event": "changed", "payload": ["n": 2], "private": true]]],
          bearer: try await served.signIn())
        #expect(batch.status == 202)
        try await served.database.run(send(3))
        #expect(await next(client) == 3)
        // With a policy it is heard.
        try await served.database.run(
          "create policy mouth on realtime.messages for insert to authenticated with check (realtime.topic() like 'kizunasync:%')"
        )
        let fresh = try await ear(served)
        fresh.send(PhoenixFrame(joinRef: "1", ref: "9", topic: "realtime:" + Self.todos, event: "broadcast", payload))
        var heard: JSONValue?
        while heard == nil, let frame = await client.frame() { heard = frame.json?["payload"]?["n"] }
        #expect(heard == 1)
        for client in [client, other, fresh] { client.close() }
      }
    }

    @Test func theTimesOfNotificationsAreTold() async throws {
      try await ServedDatabase.with { served in
        let client = try await ear(served)
        let before = SystemClock.monotonic
        for n in 1...2 { try await served.database.run(send(n)) }
        for _ in 1...2 { _ = await next(client) }
        let list = try await served.send("GET", "/_localstack/commits?after=1").json["commits"]
        #expect(list?.arrayValue?.map { $0["seq"] } == ["2"])
        let at = try #require(list?[0]?["monotonic_ns"]?.intValue)
        #expect(UInt64(at) > before && UInt64(at) < SystemClock.monotonic)
        client.close()
      }
    }
  }
#endif
