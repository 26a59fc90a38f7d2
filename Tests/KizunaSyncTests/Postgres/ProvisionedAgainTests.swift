#if Postgres
  import HTTPClient
  import HostKit
  import KizunaSyncTestSupport
  import PostgresTestSupport
  import ServerPack
  import Testing

  @testable import KizunaSync

  /// Replicas of a project whose server pack was removed and provisioned again.
  @Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
  struct ProvisionedAgainTests {
    private static let owner = "00000000-0000-4000-8000-a10000000001"
    private static let sync = "select kizunasync.sync_table('notes', bucket_column => 'owner_id');"
    private static let table = """
      create table public.notes (id text primary key, owner_id uuid not null, title text);
      create index on public.notes (owner_id);
      alter table public.notes enable row level security;
      create policy own on public.notes to authenticated using (owner_id = (select auth.uid()));
      \(sync)
      insert into public.notes select 'row ' || i, '\(owner)', 'before' from generate_series(1, 9) as i;
      """

    private static func client(_ served: ServedPack) async throws -> SyncEngine {
      let config = KizunaSyncClientConfig(
        tables: ["notes": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["title": .text])],
        databasePath: nil, remote: served.remote(owner))
      return try await SyncEngine.open(
        config: config, http: CurlHTTPClient(), clock: VirtualClock(), log: .none, emit: { _ in })
    }

    private static func write(_ op: KizunaSyncOp, _ pk: String, _ title: String?) -> LocalWrite {
      var write = LocalWrite(table: "notes", pk: pk, op: op)
      if let title { write.columns = ["title": .string(title)] }
      if op == .insert { write.columns["id"] = .string(pk) }
      return write
    }

    private static func rows(_ engine: SyncEngine) async throws -> [String] {
      try await engine.read { try $0.rows("notes") }.map { "\($0.pk)|\($0.columns["title"]?.stringValue ?? "")" }
        .sorted()
    }

    /// With fewer and with more changes since than the replica has seen before; what was written here meanwhile arrives.
    @Test(arguments: [0, 50])
    func replicasEqualTheServerAndKeepWhatTheyHaveNotPushed(more: Int) async throws {
      try await ServedPack.with("provisioned_again", Self.table) { served in
        let engine = try await Self.client(served)
        try await engine.sync()
        #expect(try await Self.rows(engine).count == 9)
        for write in [
          Self.write(.insert, "mine", "written here"), Self.write(.update, "row 1", "changed here"),
          Self.write(.delete, "row 2", nil),
        ] {
          try await engine.apply(write)
        }

        try await served.database.run(ServerPack.deprovision, inOneTransaction: true)
        try await served.database.run(
          """
          delete from public.notes where id = 'row 3';
          update public.notes set title = 'unseen' where id in ('row 1', 'row 4');
          """)
        try await served.database.run(ServerPack.migration + Self.sync, inOneTransaction: true)
        try await served.database.run(
          """
          insert into public.notes select 'new ' || i, '\(Self.owner)', 'after' from generate_series(0, \(more)) as i;
          update public.notes set title = 'later' where id = 'row 5';
          """)

        try await engine.sync()
        let server = try await served.database.run("select id, title from public.notes").sorted()
        #expect(try await Self.rows(engine) == server)
        for row in ["mine|written here", "row 1|changed here", "row 4|unseen", "row 5|later"] {
          #expect(server.contains(row), "\(row)")
        }
        #expect(server.count == 9 + more && !server.contains { $0.hasPrefix("row 2|") || $0.hasPrefix("row 3|") })
        // From now on it hears of changes, and of deletions.
        try await served.database.run(
          "update public.notes set title = 'heard' where id = 'row 6'; delete from public.notes where id = 'row 7'")
        try await engine.sync()
        #expect(
          try await Self.rows(engine)
            == served.database.run("select id, title from public.notes").sorted())
        await engine.dispose()
      }
    }
  }
#endif
