import HostKit
import PostgresTestSupport
import Testing

/// What one user must never reach or learn, with the real roles.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct SecurityTests {
  /// Ann has row 1 and Bob row 2; there is no row 99. Some columns cannot be read, some not be written.
  private static func with(_ body: (PackDatabase) async throws -> Void) async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(
        """
        create table public.todos (
          id uuid primary key, owner_id uuid not null, title text, n integer check (n < 1000), email text unique,
          secret text, fixed text default 'fixed', twice integer generated always as (n * 2) stored,
          "we""ird; column" text);
        create index on public.todos (owner_id);
        alter table public.todos enable row level security;
        create policy own on public.todos to authenticated
        using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
        revoke all on public.todos from authenticated;
        grant select (id, owner_id, title, n, email, fixed, twice, "we""ird; column") on public.todos to authenticated;
        grant insert (id, owner_id, title, n, email, secret, "we""ird; column"),
          update (owner_id, title, n, email, secret, "we""ird; column") on public.todos to authenticated;
        grant delete on public.todos to authenticated;
        select kizunasync.sync_table('todos', bucket_column => 'owner_id', conflict_journal => true);
        insert into public.todos (id, owner_id, title, n, email, secret) values
          ('\(Name.row(1))', '\(Name.ann)', 'mine', 1, 'ann@example.org', 'hers'),
          ('\(Name.row(2))', '\(Name.bob)', 'theirs', 1, 'bob@example.org', 'his');
        """)
      try await body(pack)
    }
  }

  /// As a dump leaves it that was restored without owners, and a role that goes past the policies.
  @Test(arguments: ["postgres", "kizunasync_rows"])
  func withoutThePoliciesNoRowIsGivenOutNorWritten(owner: String) async throws {
    try await Self.with { pack in
      // Roles are the cluster's, where other tests run: this is undone with its transaction.
      let change =
        owner == "postgres"
        ? "alter function kizunasync.read_rows owner to postgres; alter function kizunasync.write_row owner to postgres;"
        : "alter role kizunasync_rows bypassrls;"
      let pull: JSONValue = [
        "buckets": [["table": "todos", "params": ["owner_id": .string(Name.bob)]]], "cursor": "0", "schema_version": 1,
      ]
      let push = PackDatabase.request([mutation("update", 2, ["title": "stolen"])])
      for (function, request) in [("pull", pull), ("push", push)] {
        let call = PackDatabase.callText(function, request, as: Name.ann)
          .replacing("begin;", with: "begin; \(change)").replacing("commit;", with: "rollback;")
        let failure = await #expect(throws: SQLFailure.self) { try await pack.sql(call) }
        #expect(failure?.lines.contains { $0.contains("does not run as kizunasync_rows") } == true, "\(function)")
      }
      let titles = try await pack.sql("select title from public.todos where id = '\(Name.row(2))'")
      #expect(titles == ["theirs"])
    }
  }

  @Test func tellsAbsentAndHiddenRowsApartToNobody() async throws {
    try await Self.with { pack in
      let cases: [(Int) -> JSONValue] = [
        { mutation("update", $0, ["title": "x"]) },
        { mutation("delete", $0) },
        { mutation("update", $0, ["title": "x"], ["precondition": ["title": "theirs"]]) },
        { mutation("update", $0, ["title": "x"], ["precondition": ["title": "other"]]) },
        { mutation("update", $0, [:], ["transforms": ["n": ["op": "increment", "by": 1]]]) },
        { mutation("update", $0, ["n": "no number"]) },
        { mutation("update", $0, ["n": 5000]) },
        { mutation("update", $0, ["fixed": "x"]) },
        { mutation("update", $0) },
        { mutation("insert", $0, ["owner_id": .string(Name.bob), "title": "x"]) },
      ]
      for make in cases {
        let hidden = try await pack.verdict(Name.ann, make(2))
        let absent = try await pack.verdict(Name.ann, make(99))
        #expect(hidden == absent)
        #expect(hidden.verdict == "rejected" && hidden.row == .null)
      }
      // The key is taken: no other refusal than for a row that may not be made.
      let taken = try await pack.verdict(Name.ann, mutation("insert", 2, ["owner_id": .string(Name.ann)]))
      #expect(taken == .rejected("RLS_DENIED"))
      #expect(try await pack.sql("select title, n from public.todos where id = '\(Name.row(2))'") == ["theirs|1"])
    }
  }

  @Test func givesNobodyAnothersRows() async throws {
    try await Self.with { pack in
      let others = try await pack.call(
        "pull",
        [
          "buckets": [["table": "todos", "params": ["owner_id": .string(Name.bob)]]], "cursor": "0",
          "schema_version": 1,
        ],
        as: Name.ann)
      #expect(others["rows"] == [] && others["tombstones"] == [])
      try await pack.sql("delete from public.todos where id = '\(Name.row(2))'")
      let later = try await pack.call(
        "pull",
        [
          "buckets": [["table": "todos", "params": ["owner_id": .string(Name.bob)]]], "cursor": "0",
          "schema_version": 1,
        ],
        as: Name.ann)
      #expect(later["rows"] == [] && later["tombstones"] == [])
      // Gone is as hidden as it was.
      #expect(try await pack.verdict(Name.ann, mutation("update", 2, ["title": "x"])) == .rejected("RLS_DENIED"))
    }
  }

  @Test func recordedVerdictsAreTheirOwnersAlone() async throws {
    try await Self.with { pack in
      let id = Name.mutation()
      let once = try await pack.verdict(Name.ann, mutation("update", 1, ["title": "once"], id: id))
      let foreign = try await pack.verdict(Name.bob, mutation("update", 2, ["title": "x"], id: id))
      let twice = try await pack.verdict(Name.ann, mutation("update", 1, ["title": "twice"], id: id))
      #expect([once, foreign, twice] == [.applied, .rejected("RLS_DENIED"), .applied])
      #expect(try await pack.sql("select title from public.todos order by id") == ["once", "theirs"])
    }
  }

  @Test func honoursColumnPrivileges() async throws {
    try await Self.with { pack in
      let row = try await pack.pull(Name.ann)["rows"]?[0]?["row"]
      #expect(row?["secret"] == nil && row?["title"] == "mine" && row?["twice"] == 2)
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["secret": "new"])) == .applied)
      #expect(try await pack.sql("select secret from public.todos where id = '\(Name.row(1))'") == ["new"])
      for column in ["fixed", "twice", "ctid", "xmin", "tableoid", "no_such_column"] {
        let verdict = try await pack.verdict(Name.ann, mutation("update", 1, [column: 1]))
        #expect(verdict == .rejected("COLUMN_DENIED", row: row ?? .null), "\(column)")
      }
      // What cannot be read cannot be found out by guessing.
      let guess = mutation("update", 1, ["title": "x"], ["precondition": ["secret": "new"]])
      #expect(try await pack.verdict(Name.ann, guess).bare == .rejected("PRECONDITION"))
      let filter: JSONValue = [
        "buckets": [["table": "todos", "params": ["owner_id": .string(Name.ann), "secret": "new"]]], "cursor": "0",
        "schema_version": 1,
      ]
      await #expect(throws: SQLFailure.self) { try await pack.call("pull", filter, as: Name.ann) }
    }
  }

  @Test func journalHoldsNothingTheReaderMayNotSee() async throws {
    try await Self.with { pack in
      _ = try await pack.verdict(Name.ann, mutation("update", 1, ["title": "newer", "secret": "newer"]))
      let conflicts = try await pack.pull(Name.ann)["conflicts"]?.arrayValue ?? []
      #expect(conflicts.map { $0["column_name"] } == ["title"])
      #expect(conflicts.first?["loser_value"] == "mine")
      #expect(try await pack.pull(Name.bob)["conflicts"] == nil)
    }
  }

  @Test func anonymousAndUnnamedCallersCanDoNothing() async throws {
    try await Self.with { pack in
      let request: JSONValue = ["buckets": [], "cursor": "0", "schema_version": 1]
      await #expect(throws: SQLFailure.self) { try await pack.call("pull", request, as: Name.ann, role: "anon") }
      await #expect(throws: SQLFailure.self) {
        try await pack.call("push", PackDatabase.request([]), as: Name.ann, role: "anon")
      }
      await #expect(throws: SQLFailure.self) { try await pack.call("pull", request, as: "") }
    }
  }

  @Test func onlyPullAndPushCanBeCalled() async throws {
    try await Self.with { pack in
      let callable = try await pack.sql(
        """
        select r.rolname, p.proname from pg_roles as r cross join pg_proc as p
        where r.rolname in ('anon', 'authenticated') and p.pronamespace = 'kizunasync'::regnamespace
          and has_function_privilege(r.oid, p.oid, 'execute') order by 1, 2
        """)
      #expect(callable == ["authenticated|pull", "authenticated|push"])
      let tables = try await pack.sql(
        """
        select r.rolname, c.relname from pg_roles as r cross join pg_class as c
        where r.rolname in ('anon', 'authenticated', 'kizunasync_rows')
          and c.relnamespace = 'kizunasync'::regnamespace and c.relkind in ('r', 'S')
          and case c.relkind when 'r' then has_table_privilege(r.oid, c.oid, 'select, insert, update, delete, truncate')
            else has_sequence_privilege(r.oid, c.oid, 'usage, select, update') end
        """)
      #expect(tables == [])
      // Every function that runs with its owner's rights says where names are looked up, temporary objects last.
      let open = try await pack.sql(
        """
        select proname from pg_proc where pronamespace = 'kizunasync'::regnamespace and prosecdef
          and not exists (select from unnest(proconfig) as c where c ~ '^search_path=.*pg_temp"?$')
        """)
      #expect(open == [])
      let rows = try await pack.sql(
        "select rolsuper, rolbypassrls, rolcanlogin, rolcreaterole from pg_roles where rolname = 'kizunasync_rows'")
      #expect(rows == ["f|f|f|f"])
    }
  }

  @Test func clientsCannotRingNorListenElsewhere() async throws {
    try await Self.with { pack in
      let caller = "begin; set local role authenticated;"
      let before = try await pack.sql("select count(*) from realtime.messages")
      _ = try await pack.sql("\(caller) select realtime.send('{}', 'changed', 'kizunasync:todos', true); commit;")
      await #expect(throws: SQLFailure.self) {
        try await pack.sql(
          "\(caller) insert into realtime.messages (topic, extension) values ('kizunasync:todos', 'broadcast')")
      }
      #expect(try await pack.sql("select count(*) from realtime.messages") == before)
      let seen = try await pack.sql(
        """
        \(caller)
        select set_config('realtime.topic', 'kizunasync:todos', true) \\g /dev/null
        select count(*) > 0 from realtime.messages;
        select set_config('realtime.topic', 'elsewhere:todos', true) \\g /dev/null
        select count(*) from realtime.messages;
        """)
      #expect(seen == ["t", "0"])
    }
  }

  @Test(arguments: [
    "todos\"; drop table public.todos; --", "pg_catalog.pg_class", "kizunasync.changes", "TODOS", "public.todos",
    "todos'", "",
  ])
  func hostileTableNamesDoNothing(name: String) async throws {
    try await Self.with { pack in
      let pulled = try await pack.call(
        "pull",
        ["buckets": [["table": .string(name), "params": ["a' or true --": "x"]]], "cursor": "0", "schema_version": 1],
        as: Name.ann)
      #expect(pulled["rows"] == [])
      await #expect(throws: SQLFailure.self) {
        try await pack.push(Name.ann, mutation("update", 1, ["title": "x"], table: name))
      }
      #expect(try await pack.sql("select count(*) from public.todos") == ["2"])
    }
  }

  @Test func hostileColumnsAndValuesDoNothing() async throws {
    try await Self.with { pack in
      let text = "'; drop table public.todos; --"
      let verdict = try await pack.verdict(Name.ann, mutation("update", 1, ["we\"ird; column": .string(text)]))
      #expect(verdict == .applied)
      let row = try await pack.pull(Name.ann)["rows"]?[0]?["row"]
      #expect(row?["we\"ird; column"] == .string(text))
      for column in ["title = 'x', n", "title\" = 'x', \"n", "id) or true; --"] {
        let refused = try await pack.verdict(Name.ann, mutation("update", 1, [column: "x"]))
        #expect(refused.bare == .rejected("COLUMN_DENIED"))
        let params: JSONValue = .object(["owner_id": .string(Name.ann), column: "x"])
        await #expect(throws: SQLFailure.self) {
          try await pack.call(
            "pull", ["buckets": [["table": "todos", "params": params]], "cursor": "0", "schema_version": 1],
            as: Name.ann)
        }
      }
      let condition = try await pack.call(
        "pull",
        [
          "buckets": [["table": "todos", "params": ["owner_id": .string(Name.ann), "title": "' or true --"]]],
          "cursor": "0", "schema_version": 1,
        ], as: Name.ann)
      #expect(condition["rows"] == [])
    }
  }

  /// Keys, buckets, values, preconditions, clocks and members of arrays are data, whatever is written in them.
  @Test func hostileTextsAnywhereAreData() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(
        """
        create table public.docs (id text primary key, team text not null, body text, labels text[]);
        create index on public.docs (team);
        alter table public.docs enable row level security;
        create policy all_of_them on public.docs to authenticated using (true);
        select kizunasync.sync_table('docs', bucket_column => 'team', conflict_mode => 'hlc', conflict_journal => true);
        """)
      let texts = [
        "'; drop table public.docs; --", "\" or true; --", "$1", "$2", "$$; drop table public.docs; $$",
        "%s %I %L %1$s",
        "\\'; select 1; --", "{a,\"b\"}", "[\"a\", \"b\"]", "{\"a\": 1}", "k.pk", "E'\\x27'", "/* ", "\u{202E}'\u{7F}",
        "null",
      ]
      for text in texts {
        let value = JSONValue.string(text)
        func change(
          _ op: String, _ columns: [String: JSONValue], clock: Int, _ more: [String: JSONValue] = [:]
        ) -> JSONValue {
          let hlc = JSONValue.string("2026-01-01T00:00:00.000Z|\(clock)|\(text)")
          return mutation(op, 0, columns, table: "docs", ["pk": value, "hlc": hlc].merging(more) { $1 })
        }
        let first = change("insert", ["id": value, "team": value, "body": value], clock: 0)
        #expect(try await pack.verdict(Name.ann, first) == .applied, "\(text)")
        let second = change("update", ["body": .string(text + "!")], clock: 1, ["precondition": ["body": value]])
        #expect(try await pack.verdict(Name.ann, second) == .applied, "\(text)")
        let request: JSONValue = [
          "buckets": [["table": "docs", "params": ["team": value]]], "cursor": "0", "schema_version": 1,
        ]
        let conflicts = try await pack.call("pull", request, as: Name.ann)["conflicts"]
        #expect(conflicts?.arrayValue?.map { $0["loser_value"] } == [value])
        let third = change(
          "update", [:], clock: 2,
          ["precondition": ["id": value], "transforms": ["labels": ["op": "arrayUnion", "values": [value]]]])
        #expect(try await pack.verdict(Name.ann, third).bare == .applied, "\(text)")
        let page = try await pack.call("pull", request, as: Name.ann)
        #expect(page["rows"]?.arrayValue?.count == 1)
        #expect(
          page["rows"]?[0]?["row"] == ["id": value, "team": value, "body": .string(text + "!"), "labels": [value]])
        #expect(try await pack.verdict(Name.ann, change("delete", [:], clock: 3)) == .applied, "\(text)")
        let later = try await pack.call("pull", request, as: Name.ann)
        #expect(later["rows"] == [] && later["tombstones"]?[0]?["pk"] == value)
      }
      #expect(try await pack.sql("select count(*) from public.docs") == ["0"])
      for cursor in ["0; select 1", "1'--", "1~", "999999999999999999999", "0:1:2", "1~2.1", ""] {
        await #expect(throws: SQLFailure.self) {
          try await pack.call("pull", ["buckets": [], "cursor": .string(cursor), "schema_version": 1], as: Name.ann)
        }
      }
    }
  }

  /// Who is given a row learns nothing of what it held before.
  @Test func theJournalStaysBehindWhenARowIsGivenAway() async throws {
    try await PackDatabase.withTodos(", conflict_journal => true") { pack in
      try await pack.sql(
        """
        create policy giving on public.todos for update to authenticated using (owner_id = auth.uid()) with check (true);
        create policy reading on public.todos for select to authenticated using (true);
        """)
      func conflicts(_ user: String) async throws -> [JSONValue] {
        try await pack.pull(user)["conflicts"]?.arrayValue?.compactMap { $0["loser_value"] } ?? []
      }
      for (row, changes) in [
        (1, [["title": "new", "owner_id": .string(Name.bob)]]),
        (2, [["title": "new"], ["owner_id": .string(Name.bob)]]),
        (3, [["owner_id": .string(Name.bob)]]),
      ] as [(Int, [[String: JSONValue]])] {
        try await pack.sql(
          "insert into public.todos (id, owner_id, title) values ('\(Name.row(row))', '\(Name.ann)', 'a secret')")
        let mutations = changes.map { mutation("update", row, $0) }
        let answer = try await pack.call("push", PackDatabase.request(mutations), as: Name.ann)
        #expect(answer["verdicts"]?.arrayValue?.allSatisfy { $0["verdict"] == "applied" } == true)
      }
      #expect(try await pack.pull(Name.bob)["rows"]?.arrayValue?.count == 3)
      #expect(try await conflicts(Name.bob) == [])
      // What happens to it afterwards is his.
      _ = try await pack.verdict(Name.bob, mutation("update", 1, ["title": "newer"]))
      #expect(try await conflicts(Name.bob) == ["new"])
    }
  }

  @Test func temporaryObjectsOfTheCallerAreNotTakenForTheRealOnes() async throws {
    try await Self.with { pack in
      let answer = try await pack.sql(
        """
        begin;
        set local role authenticated;
        select set_config('request.jwt.claims', '{"sub": "\(Name.ann)", "role": "authenticated"}', true) \\g /dev/null
        create temp table tables as select 'todos'::text as table_name;
        create temp table changes (seq bigint);
        create temp table todos as select 'stolen'::text as title;
        create type pg_temp.text as (x int);
        create type pg_temp.uuid as (x int);
        create function pg_temp.has_column_privilege(pg_catalog.text, oid, pg_catalog.text, pg_catalog.text)
        returns boolean language sql as 'select true';
        set local search_path = pg_temp, public;
        select kizunasync.pull(
          '[{"table": "todos", "params": {"owner_id": "\(Name.ann)"}}]'::pg_catalog.jsonb, '0', 1) #>> '{rows,0,row}';
        """)
      let row = try JSONValue(parsing: answer.joined())
      #expect(row["title"] == "mine" && row["secret"] == nil)
    }
  }
}
