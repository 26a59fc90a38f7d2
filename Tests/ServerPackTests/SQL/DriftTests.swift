import HostKit
import PostgresTestSupport
import ServerPack
import Testing

/// What somebody has changed since the provisioning: each is named with a remedy that helps.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct DriftTests {
  private static let plan = ProvisionPlan(tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"))])

  struct Case: Sendable, CustomTestStringConvertible {
    let change: String
    let sentence: String
    /// What helps besides provisioning again.
    var remedy: String?
    /// What is done then, where the remedy is not SQL.
    var repair: String?

    var testDescription: String { change }
  }

  private static func trigger(_ operation: String, _ rest: String) -> String {
    "create or replace trigger kizunasync_\(operation) \(rest) execute function kizunasync.capture()"
  }

  private static let triggers = "triggers of table todos are missing, disabled or changed"

  static let cases = [
    // Triggers of a synced table.
    Case(
      change: trigger("insert", "after update on public.todos referencing new table as new_rows for each statement"),
      sentence: triggers),
    Case(
      change: trigger(
        "insert", "after insert on public.todos referencing new table as rows for each statement"), sentence: triggers),
    Case(
      change: trigger(
        "delete",
        "after delete on public.todos referencing old table as old_rows for each statement when (pg_backend_pid() < 0)"),
      sentence: triggers),
    Case(
      change: trigger(
        "update",
        "after update or insert on public.todos for each statement"), sentence: triggers),
    Case(change: "alter table public.todos disable trigger kizunasync_truncate", sentence: triggers),
    Case(change: "alter table public.todos enable replica trigger kizunasync_update", sentence: triggers),
    Case(change: "alter trigger kizunasync_delete on public.todos rename to other", sentence: triggers),
    Case(change: trigger("again", "after delete on public.todos for each statement"), sentence: triggers),
    Case(
      change: """
        drop trigger kizunasync_truncate on public.todos;
        create constraint trigger kizunasync_truncate after update on public.todos for each row execute function kizunasync.capture()
        """, sentence: triggers),
    // The trigger that gives out seqs.
    Case(
      change: "alter table kizunasync.commits disable trigger give_out_seqs",
      sentence: "the trigger that gives out seqs is missing, disabled or changed"),
    Case(
      change: """
        drop trigger give_out_seqs on kizunasync.commits;
        create constraint trigger give_out_seqs after insert on kizunasync.commits deferrable initially deferred
        for each row execute function kizunasync.stamp()
        """, sentence: "the trigger that gives out seqs is missing, disabled or changed"),
    // The doorbell.
    Case(
      change: "alter table realtime.messages disable row level security",
      sentence: "row-level security is off for realtime.messages",
      remedy: "alter table realtime.messages enable row level security"),
    Case(
      change:
        #"create policy "all rooms" on realtime.messages for insert to authenticated with check (auth.uid() is not null)"#,
      sentence: #"policy "all rooms" lets clients ring"#, remedy: #"drop policy "all rooms" on realtime.messages"#),
    Case(
      change: "create policy everything on realtime.messages using (true)",
      sentence: "policy everything lets clients ring", remedy: "drop policy everything on realtime.messages"),
    Case(
      change: "alter function realtime.send(jsonb, text, text, boolean) rename to send_away",
      sentence: "there is no function realtime.send(jsonb, text, text, boolean)",
      remedy: "set up Realtime", repair: "alter function realtime.send_away rename to send"),
    // Tables of the pack.
    Case(change: "delete from kizunasync.settings", sentence: "table kizunasync.settings is empty"),
    Case(change: "delete from kizunasync.horizon", sentence: "table kizunasync.horizon is empty"),
    Case(
      change: "alter table kizunasync.verdicts drop constraint verdicts_pkey",
      sentence: "index kizunasync.verdicts_pkey is missing or not valid"),
    Case(
      change: "alter table kizunasync.settings drop constraint settings_pkey",
      sentence: "index kizunasync.settings_pkey is missing or not valid"),
    Case(change: "drop sequence kizunasync.seq", sentence: "sequence kizunasync.seq is missing"),
    // Who may what.
    Case(
      change: "alter schema kizunasync owner to authenticator",
      sentence: "schema kizunasync belongs to authenticator and not to postgres"),
    Case(
      change:
        "grant create on schema kizunasync to authenticator; alter table kizunasync.grants owner to authenticator",
      sentence: "table kizunasync.grants belongs to authenticator and not to postgres"),
    Case(
      change: "alter function kizunasync.page(text, jsonb, text, integer, integer) owner to authenticator",
      sentence: "functions of the server pack were changed by hand"),
    Case(
      change: "grant select (seq) on kizunasync.changes to anon",
      sentence: "role anon may use column seq of table kizunasync.changes"),
    Case(
      change: "grant select on kizunasync.verdicts to public",
      sentence: "role authenticated may use table kizunasync.verdicts"),
    Case(change: "grant usage on schema kizunasync to anon", sentence: "role anon may use schema kizunasync"),
    Case(change: "grant create on schema kizunasync to authenticated", sentence: "role authenticated may use schema"),
    Case(
      change: "grant usage on sequence kizunasync.seq to authenticated",
      sentence: "role authenticated may use sequence kizunasync.seq"),
    Case(
      change: "grant execute on function kizunasync.pull(jsonb, text, integer, integer, uuid) to anon",
      sentence: "role anon may call kizunasync.pull("),
    Case(
      change: "grant update on kizunasync.changes to kizunasync_rows",
      sentence: "role kizunasync_rows may use table kizunasync.changes"),
    Case(
      change: "revoke usage on schema kizunasync from authenticated",
      sentence: "role authenticated may not call pull and push"),
    // Tables that are synced.
    Case(
      change: "alter table public.todos owner to kizunasync_rows",
      sentence: "the policies of table todos do not bind its owner kizunasync_rows",
      remedy: "alter table public.todos force row level security"),
    Case(
      change: "update kizunasync.tables set bucket_column = null",
      sentence: "table todos is synced by bucket column (none), not owner_id; provision again"),
  ]

  @Test(arguments: cases)
  func isNamedAndRepaired(drift: Case) async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(PackDatabase.todos)
      try await pack.sql(Self.plan.script)
      #expect(try await pack.sql(Self.plan.check) == [])
      try await pack.sql(drift.change)
      let lines = try await pack.sql(Self.plan.check)
      let line = try #require(lines.first { $0.hasPrefix(drift.sentence) }, "\(lines)")
      #expect(line.contains(drift.remedy ?? "provision again"), "\(line)")
      if let repair = drift.repair ?? drift.remedy { try await pack.sql(repair) }
      try await pack.sql(Self.plan.script)
      #expect(try await pack.sql(Self.plan.check) == [])
      try await pack.sql("insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)')")
      #expect(try await pack.pull(Name.ann)["rows"]?.arrayValue?.count == 1)
    }
  }

  /// A policy for rooms of the app's own is none of the pack's business.
  @Test func aPolicyThatKeepsOutIsNoDrift() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(PackDatabase.todos)
      try await pack.sql(Self.plan.script)
      try await pack.sql(
        """
        create policy rooms on realtime.messages for insert to authenticated
        with check (extension = 'broadcast' and realtime.topic() like 'room:%' and auth.uid() is not null);
        create policy staff on realtime.messages for insert to service_role with check (true);
        """)
      #expect(try await pack.sql(Self.plan.check) == [])
    }
  }

  /// What a role has through another one is not taken back by provisioning.
  @Test func aMembershipIsTheRemedy() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(PackDatabase.todos)
      try await pack.sql(Self.plan.script)
      let role = "auditors_of_\(pack.database.name)"
      try await pack.sql(
        "create role \(role); grant select on kizunasync.verdicts to \(role); grant \(role) to kizunasync_rows")
      #expect(
        try await pack.sql(Self.plan.check) == [
          "role kizunasync_rows may use parts of the server pack, because it is a member of \(role); revoke \(role) from kizunasync_rows"
        ])
      try await pack.sql("revoke \(role) from kizunasync_rows")
      #expect(try await pack.sql(Self.plan.check) == [])
      try await pack.sql("drop owned by \(role); drop role \(role)")
    }
  }

  /// Where users have the rights of a table's owner, policies hold for them only if they are forced.
  @Test func aTableWhosePoliciesDoNotBindIsRefused() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(PackDatabase.todos + "alter table public.todos owner to kizunasync_rows;")
      do {
        try await pack.sql(Self.plan.script)
        Issue.record("it was not refused")
      } catch let failure as SQLFailure {
        #expect(failure.message.hasPrefix("the policies of table todos do not bind its owner kizunasync_rows"))
        #expect(failure.message.contains("alter table public.todos force row level security"))
      }
      try await pack.sql("alter table public.todos force row level security")
      #expect(try await pack.sql(Self.plan.script) == ["todos: synced, 0 rows entered"])
      try await pack.sql("insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.bob)')")
      #expect(try await pack.pull(Name.ann)["rows"] == [])
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["title": "x"])) == .rejected("RLS_DENIED"))
    }
  }

  @Test func anotherServerPackIsLeftAsItIs() async throws {
    try await PackDatabase.with { _ in }
    try await PostgresCluster.shared.withDatabase(
      template: "scaffolded", setUp: [PackDatabase.scaffolding()]
    ) { database in
      try await database.run(
        PackDatabase.todos + """
          create schema kizunasync;
          create function kizunasync.pull() returns text language sql as 'select null::text';
          """)
      let before = try await database.dump()
      do {
        try await database.run(Self.plan.script)
        Issue.record("it was not refused")
      } catch let failure as SQLFailure {
        #expect(failure.message.contains("functions of another server pack"))
      }
      #expect(try await database.dump() == before)
    }
  }
}
