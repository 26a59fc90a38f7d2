#if Postgres
  import HTTPClient
  import HostKit
  import KizunaSyncTestSupport
  import PostgresTestSupport
  import Testing

  @testable import KizunaSync

  /// Values of every common column type of a real PostgreSQL, through a replica and back.
  @Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
  struct ClientValueTests {
    private static let table = """
      create type public.mood as enum ('happy', 'so so');
      create domain public.percent as numeric(5, 2) check (value between 0 and 100);
      create table public.typed (
        id uuid primary key default gen_random_uuid(), owner_id uuid not null, title text,
        b boolean, i2 smallint, i4 integer, i8 bigint, num numeric, num2 numeric(20, 6), f4 real, f8 double precision,
        t text, v varchar(20), c char(4), u uuid, d date, tz timestamptz, ts timestamp, tm time, iv interval,
        j json, jb jsonb, by bytea, ta text[], ia integer[], e public.mood, ip inet, p public.percent,
        twice integer generated always as (i4 * 2) stored);
      create index on public.typed (owner_id);
      alter table public.typed enable row level security;
      create policy own on public.typed to authenticated using (owner_id = (select auth.uid()));
      select kizunasync.sync_table('typed', bucket_column => 'owner_id');
      insert into public.typed values (
        '00000000-0000-4000-8000-e10000000001', '\(owner)', 'before',
        true, -32768, 1073741823, 9223372036854775807, 123456789012345678901234567890.123456789, 1.500000, 0.1, 1e-300,
        E'quote '' \\\\ backslash \\n newline é 𝄞', 'varchar', 'ab', '\(owner)', '2024-02-29',
        '2024-02-29 12:34:56.123456+02', '1999-12-31 23:59:59.999999', '23:59:59.5', '1 year 2 mons 3 days 04:05:06.7',
        '{"b": 1, "a": [1, 2.50, null]}', '{"b": 1, "a": [1, 2.50, null]}', '\\xdeadbeef00', '{a,NULL,"b c","{}"}',
        '{1,-2,NULL}', 'so so', '192.168.1.0/24', 99.95);
      insert into public.typed (id, owner_id, title) values
        ('00000000-0000-4000-8000-e10000000002', '\(owner)', 'before');
      insert into public.typed (id, owner_id, title, f8, num, f4, t, i8, b) values
        ('00000000-0000-4000-8000-e10000000003', '\(owner)', 'before', 'Infinity', 'NaN', '-Infinity', '', 0, false);
      """

    private static let kinds: [String: KizunaSyncColumnKind] = [
      "b": .boolean, "num": .numeric, "num2": .numeric, "p": .numeric, "j": .json, "jb": .json, "ta": .json,
      "ia": .json,
    ]

    /// With the kinds that a careful app declares, and with those that are learned from the rows.
    @Test(arguments: [true, false])
    func comeThroughAReplicaAsTheyWere(isDeclared: Bool) async throws {
      try await ServedPack.with("typed", Self.table) { served in
        let engine = try await SyncEngine.open(
          config: KizunaSyncClientConfig(
            tables: [
              "typed": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: isDeclared ? Self.kinds : [:])
            ], databasePath: nil, remote: served.remote(owner)),
          http: CurlHTTPClient(), clock: VirtualClock(), log: .none, emit: { _ in })
        let images = "select (to_jsonb(x.*) - 'title')::text, x.num, x.c || '|' from public.typed as x order by id"
        let before = try await served.database.run(images)
        try await engine.sync()

        // One column of each row, by plain SQL; then all of them, as a program does that writes what it has read.
        try await engine.withReplica { replica in
          try replica.database.execute("UPDATE typed SET title = 'after'")
        }
        try await engine.sync()
        #expect(try await served.database.run(images) == before)
        #expect(try await served.database.run("select distinct title from public.typed") == ["after"])

        let columns = [
          "owner_id", "b", "i2", "i4", "i8", "num", "num2", "f4", "f8", "t", "v", "c", "u", "d", "tz", "ts", "tm", "iv",
          "j", "jb", "by", "ta", "ia", "e", "ip", "p",
        ]
        let list = columns.joined(separator: ", ")
        try await engine.withReplica { replica in
          try replica.database.execute(
            """
            INSERT INTO typed(id, title, \(list))
            SELECT '00000000-0000-4000-8000-e2' || substr(id, 27), 'copy', \(list) FROM typed;
            UPDATE typed SET \(columns.map { "\($0) = \($0)" }.joined(separator: ", ")) WHERE title = 'after';
            """)
        }
        try await engine.sync()
        #expect(
          try await served.database.run(images.replacing(" order by", with: " where title = 'after' order by"))
            == before)
        let refused = try await engine.rejections(includeDismissed: true).map { "\($0)" }
        #expect(refused == [])
        #expect(try await served.database.run("select count(*) from public.typed where title = 'copy'") == ["3"])
        let differences = try await served.database.run(
          """
          select own.id, x.key, x.value, y.value
          from public.typed as own
          join public.typed as other on right(other.id::text, 10) = right(own.id::text, 10) and other.title = 'copy'
          cross join lateral jsonb_each_text(to_jsonb(own.*)) as x
          join lateral jsonb_each_text(to_jsonb(other.*)) as y on y.key = x.key
          where own.title = 'after' and x.key not in ('id', 'title') and x.value is distinct from y.value
          """)
        #expect(differences == [])
        await engine.dispose()
      }
    }
  }
#endif
