import HostKit
import PostgresTestSupport
import ServerPack
import Testing

/// Putting the pack into a database, tables under it, and taking both away.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct ProvisionTests {
  private static let plan = ProvisionPlan(tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"))])

  /// A database without the pack. The cluster has another one with it, so that its role stays while tests run.
  private static func with(_ body: (TestDatabase) async throws -> Void) async throws {
    try await PackDatabase.with { _ in }
    try await PostgresCluster.shared.withDatabase(
      template: "scaffolded", setUp: [PackDatabase.scaffolding()]
    ) { try await body($0) }
  }

  /// A role of the cluster that owns what whoever installs the pack has to own.
  private static func prepare(
    _ role: String, _ attributes: String, grant roles: String, _ option: String = "", in database: TestDatabase
  ) async throws {
    try await database.run(
      """
      do $$ begin
        if not exists (select from pg_roles where rolname = '\(role)') then
          create role \(role) login \(attributes);
          grant \(roles) to \(role) \(option);
        end if;
      end $$;
      grant create on database \(database.name) to \(role);
      grant all on schema public to \(role);
      grant usage on schema auth, realtime to \(role);
      alter table realtime.messages owner to \(role);
      """)
  }

  private static let rows = "insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)');"

  @Test func appliedAgainChangesNothing() async throws {
    try await Self.with { database in
      try await database.run(PackDatabase.todos + Self.rows)
      #expect(try await database.run(Self.plan.script) == ["todos: synced, 1 rows entered"])
      let once = try await database.dump()
      #expect(try await database.run(Self.plan.script) == ["todos: unchanged"])
      #expect(try await database.dump() == once)
      #expect(try await database.run(Self.plan.check) == [])
      // Only the tables, without the pack around them.
      #expect(
        try await database.run("select kizunasync.sync_table('todos', bucket_column => 'owner_id')") == ["unchanged"])
    }
  }

  @Test func twoAtOnceInAnEmptyDatabaseAreOneAfterTheOther() async throws {
    try await Self.with { database in
      try await database.run(PackDatabase.todos + Self.rows)
      async let one = database.run(Self.plan.script)
      async let other = database.run(Self.plan.script)
      #expect(try await Set(one + other) == ["todos: synced, 1 rows entered", "todos: unchanged"])
    }
  }

  /// The app's transactions neither wait for it nor are waited for, whatever they have written.
  @Test func appliedAgainItStandsInNobodysWay() async throws {
    try await Self.with { database in
      try await database.run(PackDatabase.todos + Self.rows)
      try await database.run(Self.plan.script)
      let writer = try database.session()
      _ = try await writer.run("begin; update public.todos set title = 'x'; set constraints all immediate")
      #expect(
        try await database.run("set lock_timeout = '10s'; " + Self.plan.script) == ["todos: unchanged"])
      _ = try await writer.run("commit")
      #expect(try await database.run("select title from public.todos") == ["x"])
      await writer.end()
    }
  }

  /// What the triggers did not see.
  @Test func aTableIsEnteredAnew() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(
        "insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)'), ('\(Name.row(2))', '\(Name.ann)')"
      )
      let cursor = try #require(try await pack.pull(Name.ann)["cursor"]?.stringValue)
      try await pack.sql(
        """
        set session_replication_role = replica;
        insert into public.todos (id, owner_id) values ('\(Name.row(3))', '\(Name.ann)');
        delete from public.todos where id = '\(Name.row(1))';
        """)
      #expect(try await pack.pull(Name.ann, cursor)["rows"] == [])
      #expect(try await pack.sql("select kizunasync.resync_table('todos')") == ["synced, 3 rows entered"])
      let page = try await pack.pull(Name.ann, cursor)
      #expect(page["rows"]?.arrayValue?.compactMap { $0["pk"]?.stringValue } == [Name.row(2), Name.row(3)])
      #expect(page["tombstones"]?.arrayValue?.compactMap { $0["pk"]?.stringValue } == [Name.row(1)])
      #expect(try await pack.sql("select kizunasync.has_triggers('todos')") == ["t"])
    }
  }

  @Test func deprovisionLeavesNothing() async throws {
    try await Self.with { database in
      try await database.run(PackDatabase.todos + Self.rows)
      let before = try await database.dump(["--schema-only"])
      try await database.run(Self.plan.script)
      try await database.run("update public.todos set title = 'x'")
      try await database.run(ServerPack.deprovision, inOneTransaction: true)
      #expect(try await database.dump(["--schema-only"]) == before)
      #expect(try await database.run("select title from public.todos") == ["x"])
      // Where nothing is, nothing is to be done.
      try await database.run(ServerPack.deprovision, inOneTransaction: true)
    }
  }

  /// Rows that stood before are in the feed, and rows of a time without triggers are found again.
  @Test func seedsRowsThatStand() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(PackDatabase.todos)
      try await pack.sql(
        "insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)'), ('\(Name.row(2))', '\(Name.bob)'), ('\(Name.row(3))', '\(Name.ann)')"
      )
      try await pack.sql("select kizunasync.sync_table('todos', bucket_column => 'owner_id')")
      let page = try await pack.pull(Name.ann)
      #expect(page["rows"]?.arrayValue?.compactMap { $0["pk"]?.stringValue } == [Name.row(1), Name.row(3)])
      let cursor = try await pack.cursor(3)
      #expect(page["cursor"] == .string(cursor))

      try await pack.sql(
        """
        alter table public.todos disable trigger user;
        delete from public.todos where id = '\(Name.row(1))';
        update public.todos set title = 'unseen' where id = '\(Name.row(3))';
        insert into public.todos (id, owner_id) values ('\(Name.row(4))', '\(Name.ann)');
        """)
      let drift = try await pack.sql(Self.plan.check)
      #expect(drift.contains { $0.hasPrefix("triggers of table todos are missing, disabled or changed") })
      try await pack.sql("select kizunasync.sync_table('todos', bucket_column => 'owner_id')")
      let later = try await pack.pull(Name.ann, cursor)
      #expect(later["rows"]?.arrayValue?.compactMap { $0["pk"]?.stringValue } == [Name.row(3), Name.row(4)])
      #expect(later["tombstones"]?[0]?["pk"] == .string(Name.row(1)))
    }
  }

  /// Everything that is wrong with every table, at once, and nothing is changed.
  @Test func refusesWithAllReasons() async throws {
    try await Self.with { database in
      try await database.run(
        """
        create table public.open (id integer primary key, owner_id uuid);
        create table public.keyless (id integer); alter table public.keyless enable row level security;
        create table public.odd (id numeric primary key); alter table public.odd enable row level security;
        create collation public.anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        create table public.folded (id text collate public.anycase primary key);
        alter table public.folded enable row level security;
        create table public.other (a integer, b integer, primary key (b, a)); alter table public.other enable row level security;
        create table public.parted (id integer primary key) partition by range (id);
        create view public.view as select 1 as id;
        create table public.unreadable (id integer primary key); alter table public.unreadable enable row level security;
        revoke all on public.unreadable from authenticated;
        """)
      let before = try await database.dump()
      let plan = ProvisionPlan(tables: [
        "open": TableDeclaration(bucket: .owner(column: "owner_id"), columns: ["nowhere": .text]),
        "keyless": TableDeclaration(), "odd": TableDeclaration(), "folded": TableDeclaration(),
        "other": TableDeclaration(key: ["a", "b"]), "parted": TableDeclaration(), "view": TableDeclaration(),
        "missing": TableDeclaration(), "unreadable": TableDeclaration(),
        "bad\"; drop table open; --": TableDeclaration(),
      ])
      do {
        try await database.run(plan.script)
        Issue.record("it was not refused")
      } catch let failure as SQLFailure {
        for reason in [
          "row-level security is off for table open", "bucket column owner_id of table open has no index",
          "table open has no column nowhere", "table keyless has no primary key",
          "key column id of table odd has type numeric",
          "key column id of table folded takes different texts for equal",
          "the key of table other is declared as (a, b), but its primary key is (b, a)",
          "public.parted is a partitioned table",
          "public.view is a view", "there is no table public.missing", "may not read column id of table unreadable",
          "a table name starts with a lower-case letter",
        ] {
          #expect(failure.description.contains(reason), "\(reason)")
        }
      }
      #expect(try await database.dump() == before)
    }
  }

  @Test func checkTellsWhatDiffers() async throws {
    try await Self.with { database in
      try await database.run(PackDatabase.todos)
      #expect(
        try await database.run(Self.plan.check) == [
          "the server pack is not installed, or of another release; provision"
        ])
      try await database.run(Self.plan.script)
      #expect(try await database.run(Self.plan.check) == [])
      try await database.run(
        """
        alter table public.todos disable row level security;
        drop policy "kizunasync wakeup receive" on realtime.messages;
        grant select on kizunasync.changes to anon;
        grant execute on function kizunasync.caller() to authenticated;
        revoke execute on function kizunasync.push(jsonb, uuid, integer, uuid) from authenticated;
        update kizunasync.tables set conflict_mode = 'hlc';
        alter table kizunasync.commits disable trigger give_out_seqs;
        create or replace function kizunasync.caller() returns text language sql as $$ select 'anybody' $$;
        drop index kizunasync.changes_feed;
        """)
      let lines = try await database.run(Self.plan.check)
      for text in [
        "row-level security is off for table todos", "the policy that lets users listen is missing",
        "role anon may use table kizunasync.changes", "role authenticated may call kizunasync.caller()",
        "role authenticated may not call pull and push", "table todos settles conflicts by hlc, not arrival",
        "index kizunasync.changes_feed is missing or not valid",
        "the trigger that gives out seqs is missing, disabled or changed",
        "functions of the server pack were changed by hand",
      ] {
        #expect(lines.contains { $0.contains(text) }, "\(text)")
      }
      try await database.run("alter table public.todos enable row level security")
      try await database.run(Self.plan.script)
      #expect(try await database.run(Self.plan.check) == [])
      // Policies of that name that let others listen, or to more.
      for policy in [
        "for select to authenticated using (true)", "for all to authenticated using (realtime.topic() = 'x')",
        "for select to public using (extension = 'broadcast' and starts_with(realtime.topic(), 'kizunasync:'))",
      ] {
        try await database.run(
          """
          drop policy "kizunasync wakeup receive" on realtime.messages;
          create policy "kizunasync wakeup receive" on realtime.messages \(policy)
          """)
        #expect(try await database.run(Self.plan.check).contains { $0.hasPrefix("the policy that lets users listen") })
        try await database.run(Self.plan.script)
        #expect(try await database.run(Self.plan.check) == [])
      }
    }
  }

  /// As on Supabase: the role that installs is no superuser, and owns the tables and the right to make policies.
  @Test func needsNoSuperuser() async throws {
    try await Self.with { database in
      try await Self.prepare(
        "hosted", "nosuperuser createrole bypassrls", grant: "anon, authenticated, service_role", "with admin option",
        in: database)
      try await database.run(
        PackDatabase.todos + "grant all on public.todos to authenticated;" + Self.rows, user: "hosted")
      // Another role has made the one of the rows here. Since PostgreSQL 16 that is no longer enough to become it.
      if try await database.run("select current_setting('server_version_num')::int >= 160000") == ["t"] {
        do {
          try await database.run(Self.plan.script, user: "hosted")
          Issue.record("it was not refused")
        } catch let failure as SQLFailure {
          #expect(failure.description.contains("role hosted may not become kizunasync_rows"))
          #expect(failure.description.contains("grant kizunasync_rows to hosted"))
        }
      }
      try await database.run("grant kizunasync_rows to hosted")
      #expect(try await database.run(Self.plan.script, user: "hosted") == ["todos: synced, 1 rows entered"])
      #expect(try await database.run(Self.plan.script, user: "hosted") == ["todos: unchanged"])
      let pack = PackDatabase(database: database)
      #expect(try await pack.pull(Name.ann)["rows"]?.arrayValue?.count == 1)
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["title": "x"])) == .applied)
      #expect(try await database.run("select count(*) from realtime.messages") == ["2"])
      // A superuser who brings it up to date leaves what is new to whom the rest belongs to.
      try await database.run("drop function kizunasync.place(), kizunasync.settle_seq()")
      #expect(try await database.run(Self.plan.script) == ["todos: unchanged"])
      #expect(try await database.run(Self.plan.check) == [])
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["title": "y"])) == .applied)
      #expect(try await pack.pull(Name.ann)["rows"]?[0]?["row"]?["title"] == "y")
      try await database.run(ServerPack.deprovision, user: "hosted", inOneTransaction: true)
      #expect(try await database.run("select to_regnamespace('kizunasync') is null") == ["t"])
    }
  }

  /// With FORCE the policies bind the owner too, who enters the rows, and after that as before.
  @Test func anOwnerUnderThePoliciesEntersAllRows() async throws {
    try await Self.with { database in
      try await Self.prepare(
        "bound", "nosuperuser nobypassrls", grant: "anon, authenticated, service_role, kizunasync_rows", in: database)
      try await database.run(
        PackDatabase.todos + "grant all on public.todos to authenticated;" + Self.rows
          + "alter table public.todos force row level security", user: "bound")
      #expect(try await database.run(Self.plan.script, user: "bound") == ["todos: synced, 1 rows entered"])
      #expect(try await database.run(Self.plan.script, user: "bound") == ["todos: unchanged"])
      #expect(
        try await database.run("select relforcerowsecurity from pg_class where oid = 'public.todos'::regclass") == ["t"]
      )
      let pack = PackDatabase(database: database)
      #expect(try await pack.pull(Name.ann)["rows"]?.arrayValue?.count == 1)
      #expect(try await pack.pull(Name.bob)["rows"] == [])
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["title": "x"])) == .applied)
      #expect(try await pack.verdict(Name.bob, mutation("update", 1, ["title": "y"])) == .rejected("RLS_DENIED"))
      try await database.run(ServerPack.deprovision, user: "bound", inOneTransaction: true)
    }
  }

  /// While the pack is removed here, a database that also has it may be dropped: the role it needed stays then.
  @Test func anotherDatabaseThatIsBeingDroppedKeepsNothingFromBeingRemoved() async throws {
    try await Self.with { database in
      try await database.run(ServerPack.migration, inOneTransaction: true)
      // What a transaction sees that looked for dependencies just before the other database was gone.
      let gone = "set allow_system_table_mods = on;"
      try await database.run(
        gone
          + """
          insert into pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
          select 4294967290, 'pg_class'::regclass, 4294967290, 0, 'pg_authid'::regclass, oid, 'o'
          from pg_authid where rolname = 'kizunasync_rows'
          """)
      await #expect(throws: (any Error).self) { try await database.run("drop role kizunasync_rows") }
      try await database.run(ServerPack.deprovision, inOneTransaction: true)
      #expect(try await database.run("select to_regnamespace('kizunasync') is null") == ["t"])
      try await database.run(gone + "delete from pg_shdepend where dbid = 4294967290")
    }
  }

  @Test func schedulesMaintenanceWhereThereIsAScheduler() async throws {
    try await Self.with { database in
      try await database.run(
        """
        create schema cron;
        create table cron.job (jobid serial, jobname text unique, schedule text, command text);
        create function cron.schedule(name text, schedule text, command text) returns bigint language sql as $$
          insert into cron.job (jobname, schedule, command) values (name, schedule, command)
          on conflict (jobname) do update set schedule = excluded.schedule, command = excluded.command returning jobid
        $$;
        create function cron.unschedule(name text) returns boolean language sql as $$
          delete from cron.job where jobname = name returning true
        $$;
        """)
      try await database.run(ServerPack.migration, inOneTransaction: true)
      let jobs = "select jobid, schedule, command from cron.job order by jobid"
      let made = try await database.run(jobs)
      #expect(
        made.map { $0.drop { $0 != "|" }.dropFirst() } == [
          "16 3 * * *|select kizunasync.reap_tombstones()", "47 3 * * *|select kizunasync.compact_changelog()",
          "31 3 * * *|select kizunasync.prune_clients()",
        ])
      try await database.run(ServerPack.migration, inOneTransaction: true)
      #expect(try await database.run(jobs) == made)
      try await database.run(ServerPack.deprovision, inOneTransaction: true)
      #expect(try await database.run(jobs) == [])
    }
  }
}
