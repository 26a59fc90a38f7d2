#if Postgres
  import HTTPClient
  import HostKit
  import KizunaSyncTestSupport
  import PostgresTestSupport
  import Testing

  @testable import KizunaSync

  /// Fifty clients of two users write to the same rows and sync, all at once: no sync fails, no increment is lost or
  /// counted twice, and in the end each shows what the server has.
  ///
  /// `KIZUNA_CLIENT_SECONDS` says for how long.
  @Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
  struct ManyClientsTests {
    private static let seconds = ProgramCount.of("KIZUNA_CLIENT_SECONDS", otherwise: 4)
    private static let users = [owner, "00000000-0000-4000-8000-b20000000002"]
    private static let shared = 20

    private static let table = """
      create table public.cells (id text primary key, owner_id text, n integer default 0, title text);
      create index on public.cells (owner_id);
      alter table public.cells enable row level security;
      create policy own on public.cells to authenticated using (owner_id = auth.uid()::text);
      select kizunasync.sync_table('cells', bucket_column => 'owner_id');
      insert into public.cells (id, owner_id)
      select u || '-' || i, u from unnest('{\(users.joined(separator: ","))}'::text[]) as u, generate_series(1, \(shared)) as i;
      """

    @Test func convergeWithoutAnError() async throws {
      try await ServedPack.with("cells", Self.table) { served in
        let http = CurlHTTPClient(.init(maximumKeptConnections: 50, maximumConnectionsPerHost: 50))
        var clients: [(user: String, engine: SyncEngine)] = []
        for number in 0..<50 {
          let user = Self.users[number % 2]
          let engine = try await SyncEngine.open(
            config: KizunaSyncClientConfig(
              tables: ["cells": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["n": .number])],
              databasePath: nil, remote: served.remote(user)),
            http: http, clock: VirtualClock(), log: .none, emit: { _ in })
          clients.append((user, engine))
        }
        let end = SystemClock.monotonic + UInt64(Self.seconds) * 1_000_000_000
        let increments = try await withThrowingTaskGroup(of: Int.self) { group in
          for (number, client) in clients.enumerated() {
            group.addTask { try await Self.work(client.engine, client.user, number, until: end) }
          }
          return try await group.reduce(0, +)
        }
        #expect(increments > 0)
        #expect(try await served.database.run("select sum(n) from public.cells") == ["\(increments)"])
        #expect(
          try await served.database.run("select count(*) from kizunasync.verdicts where verdict <> 'applied'") == ["0"])
        for client in clients {
          try await client.engine.sync()
          let rows = try await client.engine.read { try $0.rows("cells") }
          let shown = rows.map {
            "\($0.pk)|\($0.columns["n"]?.intValue ?? -1)|\($0.columns["title"]?.stringValue ?? "")"
          }
          let wanted = try await served.database.run(
            "select id, n, title from public.cells where owner_id = '\(client.user)'")
          #expect(shown.sorted() == wanted.sorted())
          await client.engine.dispose()
        }
      }
    }

    /// - Returns: by how much the counters went up.
    private static func work(
      _ engine: SyncEngine, _ user: String, _ number: Int, until end: UInt64
    ) async throws -> Int {
      var random = SeededRandom(UInt64(number))
      try await engine.sync()
      var (total, round) = (0, 0)
      while SystemClock.monotonic < end {
        for _ in 0...random.below(3) {
          let by = 1 + random.below(5)
          var write = LocalWrite(table: "cells", pk: "\(user)-\(1 + random.below(shared))", op: .update)
          write.transforms = ["n": ["op": "increment", "by": .int(by)]]
          try await engine.apply(write)
          total += by
        }
        var write = LocalWrite(table: "cells", pk: "\(user)-\(1 + random.below(shared))", op: .update)
        write.columns = ["title": .string("\(number) \(round)")]
        try await engine.apply(write)
        if round % 3 == 0 {
          var write = LocalWrite(table: "cells", pk: "\(number)-\(round)", op: .insert)
          write.columns = ["id": .string("\(number)-\(round)"), "title": "new", "n": 0]
          try await engine.apply(write)
        }
        round += 1
        try await engine.sync()
      }
      return total
    }
  }
#endif
