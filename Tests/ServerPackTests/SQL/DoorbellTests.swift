import HostKit
import PostgresTestSupport
import Testing

/// When the pack rings, and when not.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct DoorbellTests {
  /// Topic, event, privacy and payload of every ring since the last call.
  private func rings(_ pack: PackDatabase) async throws -> [String] {
    try await pack.sql(
      """
      delete from realtime.messages returning concat_ws(' ', topic, event, private, extension, payload - 'id')
      """)
  }

  private static func with(_ body: (PackDatabase) async throws -> Void) async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(
        """
        create table public.notes (id integer primary key, todo_id uuid references public.todos on delete cascade);
        alter table public.notes enable row level security;
        grant select on public.notes to authenticated;
        select kizunasync.sync_table('notes');
        create table public.unsynced (id integer);
        delete from realtime.messages;
        """)
      try await body(pack)
    }
  }

  private let todos = "kizunasync:todos changed t broadcast {\"t\": \"todos\"}"
  private let notes = "kizunasync:notes changed t broadcast {\"t\": \"notes\"}"

  @Test func oncePerTableAndTransaction() async throws {
    try await Self.with { pack in
      try await pack.sql(
        """
        begin;
        insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)'), ('\(Name.row(2))', '\(Name.ann)');
        insert into public.unsynced values (1);
        insert into public.notes values (1, '\(Name.row(1))');
        update public.todos set title = 'x';
        commit;
        """)
      // In the order of what counts, the last change of each row.
      #expect(try await rings(pack) == [notes, todos])
      // A delete, with what it takes along.
      try await pack.sql("delete from public.todos where id = '\(Name.row(1))'")
      #expect(try await rings(pack).sorted() == [notes, todos])
      // A change of bucket.
      try await pack.sql("update public.todos set owner_id = '\(Name.bob)'")
      #expect(try await rings(pack) == [todos])
      // A push with several mutations.
      let answer = try await pack.push(
        Name.ann, mutation("insert", 5, ["owner_id": .string(Name.ann)]), mutation("update", 5, ["title": "x"]))
      #expect(answer["verdicts"]?.arrayValue?.count == 2)
      #expect(try await rings(pack) == [todos])
    }
  }

  /// Whoever asks for deferred checks early has each statement counted at once; the room is rung in once all the same.
  @Test func onceAlsoForChecksThatDoNotWait() async throws {
    try await Self.with { pack in
      try await pack.sql(
        """
        begin;
        set constraints all immediate;
        insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)');
        update public.todos set title = 'x';
        savepoint s; insert into public.notes values (1); rollback to s;
        insert into public.notes values (2);
        update public.todos set title = 'y';
        commit;
        """)
      #expect(try await rings(pack) == [todos, notes])
      // A session's next transaction rings again.
      try await pack.sql(
        "update public.todos set title = 'z'; begin; set constraints all immediate; update public.todos set n = 1; commit"
      )
      #expect(try await rings(pack) == [todos, todos])
    }
  }

  @Test func notForWhatChangedNothing() async throws {
    try await Self.with { pack in
      try await pack.sql("insert into public.todos (id, owner_id, title) values ('\(Name.row(1))', '\(Name.ann)', 'x')")
      _ = try await rings(pack)
      let seqs = try await pack.sql("select seq from kizunasync.changes")
      try await pack.sql(
        """
        update public.todos set title = 'x';
        update public.todos set title = title, owner_id = owner_id;
        update public.todos set title = 'y' where false;
        delete from public.todos where false;
        begin; update public.todos set title = 'y'; rollback;
        begin; savepoint s; update public.todos set title = 'y'; rollback to s; insert into public.unsynced values (1); commit;
        begin; savepoint s; insert into public.notes values (7); rollback to s; release s; commit;
        """)
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["n": "no number"])).reason == "CONSTRAINT")
      #expect(
        try await pack.push(Name.ann, atomic: true, mutation("update", 1, ["title": "z"]), mutation("update", 9))[
          "batch"] != nil)
      _ = try await pack.pull(Name.ann)
      #expect(try await rings(pack) == [])
      #expect(try await pack.sql("select seq from kizunasync.changes") == seqs)
      #expect(try await pack.sql("select count(*) from kizunasync.uncommitted") == ["0"])
      #expect(try await pack.sql("select count(*) from kizunasync.commits") == ["0"])
    }
  }

  @Test func afterPartOfATransactionIsTakenBack() async throws {
    try await Self.with { pack in
      try await pack.sql(
        """
        begin;
        insert into public.notes values (1);
        savepoint s;
        insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)');
        rollback to s;
        insert into public.notes values (2);
        commit;
        """)
      #expect(try await rings(pack) == [notes])
      #expect(
        try await pack.sql("select table_name, pk from kizunasync.changes order by seq") == ["notes|1", "notes|2"])
    }
  }

  /// The rings are in the order of the commits, and never before what they announce.
  @Test func inTheOrderOfCommits() async throws {
    try await Self.with { pack in
      let first = try pack.database.session()
      let second = try pack.database.session()
      try await first.run("begin; insert into public.notes values (1)")
      try await second.run("begin; insert into public.todos (owner_id) values ('\(Name.ann)')")
      #expect(try await pack.sql("select count(*) from realtime.messages") == ["0"])
      try await second.run("commit")
      #expect(try await rings(pack) == [todos])
      try await first.run("commit")
      #expect(try await rings(pack) == [notes])
      #expect(try await pack.sql("select table_name from kizunasync.changes order by seq") == ["todos", "notes"])
      await first.end()
      await second.end()
    }
  }

  @Test func aDoorbellOutOfOrderFailsNobody() async throws {
    try await Self.with { pack in
      try await pack.sql("drop function realtime.send(jsonb, text, text, boolean)")
      try await pack.sql("insert into public.notes values (1)")
      try await pack.sql(
        """
        create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
        language plpgsql as $$ begin raise exception 'broken'; end $$
        """)
      try await pack.sql("insert into public.notes values (2)")
      #expect(try await pack.sql("select pk from kizunasync.changes order by seq") == ["1", "2"])
    }
  }
}
