import HostKit
import PostgresTestSupport
import Testing

/// What the transcripts do not show of a push against real tables.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct PushTests {
  private static func with(_ body: (PackDatabase) async throws -> Void) async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(
        "insert into public.todos (id, owner_id, title) values ('\(Name.row(1))', '\(Name.ann)', 'one')")
      try await body(pack)
    }
  }

  /// The same request twice at the same time takes effect once, and both are told the same.
  @Test func oneMutationFromTwoConnectionsCountsOnce() async throws {
    try await Self.with { pack in
      let request = PackDatabase.request([
        mutation("update", 1, [:], ["transforms": ["n": ["op": "increment", "by": 1]]])
      ])
      let text = PackDatabase.callText("push", request, as: Name.ann)
      let first = try pack.database.session()
      let second = try pack.database.session()
      let rows = try await first.run(text.replacingLast("commit;", with: ""))
      let waiting = try await second.send(text)
      try await first.run("commit")
      let answers = try [rows, try await waiting.rows()].map { try JSONValue(parsing: $0.joined()) }
      #expect(answers[0] == answers[1])
      #expect(try await pack.sql("select n from public.todos") == ["1"])
      await first.end()
      await second.end()
    }
  }

  /// A push waits for a writer of its row and then decides on what that one left.
  @Test func decidesOnTheRowAsItIsWhenItsWriterIsDone() async throws {
    try await Self.with { pack in
      let writer = try pack.database.session()
      try await writer.run("begin; update public.todos set title = 'two'")
      let client = try pack.database.session()
      let request = PackDatabase.request([mutation("update", 1, ["n": 5], ["precondition": ["title": "one"]])])
      let waiting = try await client.send(PackDatabase.callText("push", request, as: Name.ann))
      try await writer.run("select pg_sleep(0.05); commit")
      let answer = try JSONValue(parsing: try await waiting.rows().joined())
      #expect(answer["verdicts"]?[0]?["reason"] == "PRECONDITION")
      #expect(answer["verdicts"]?[0]?["server_row"]?["title"] == "two")
      await writer.end()
      await client.end()
    }
  }

  /// The same key inserted by two connections: the later one changes the row of the earlier.
  @Test func anInsertThatComesSecondIsAChange() async throws {
    try await Self.with { pack in
      let first = try pack.database.session()
      let second = try pack.database.session()
      func insert(_ columns: [String: JSONValue]) -> String {
        PackDatabase.callText("push", PackDatabase.request([mutation("insert", 7, columns)]), as: Name.ann)
      }
      try await first.run(insert(["owner_id": .string(Name.ann), "title": "first"]).replacingLast("commit;", with: ""))
      let waiting = try await second.send(insert(["owner_id": .string(Name.ann), "n": 9]))
      try await first.run("commit")
      let answer = try JSONValue(parsing: try await waiting.rows().joined())
      #expect(answer["verdicts"]?[0]?["verdict"] == "applied")
      #expect(try await pack.sql("select title, n from public.todos where id = '\(Name.row(7))'") == ["first|9"])
      await first.end()
      await second.end()
    }
  }

  @Test func insertsFillDefaultsAndMergeIntoWhatStands() async throws {
    try await Self.with { pack in
      try await pack.sql("alter table public.todos alter column title set default 'untitled'")
      #expect(try await pack.verdict(Name.ann, mutation("insert", 2, ["owner_id": .string(Name.ann)])) == .applied)
      #expect(try await pack.sql("select title, n from public.todos where id = '\(Name.row(2))'") == ["untitled|0"])
      #expect(
        try await pack.verdict(Name.ann, mutation("insert", 1, ["n": 4, "id": .string(Name.row(1))])) == .applied)
      #expect(try await pack.sql("select title, n from public.todos where id = '\(Name.row(1))'") == ["one|4"])
      let other = mutation("insert", 3, ["owner_id": .string(Name.ann), "id": .string(Name.row(4))])
      #expect(try await pack.verdict(Name.ann, other) == .rejected("CONSTRAINT"))
    }
  }

  /// The triggers of the app see the caller and find the app's functions.
  @Test func theAppsOwnTriggersRun() async throws {
    try await Self.with { pack in
      try await pack.sql(
        """
        create function public.shout(text) returns text language sql as $$ select upper($1) $$;
        create function public.on_todo() returns trigger language plpgsql as $$
        begin
          if new.title = 'forbidden' then raise exception 'no such title'; end if;
          new.title := shout(new.title) || ' ' || right(auth.uid()::text, 2) || ' ' || auth.role();
          return new;
        end $$;
        create trigger on_todo before update on public.todos for each row execute function public.on_todo();
        """)
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["title": "hi"])) == .applied)
      #expect(try await pack.sql("select title from public.todos") == ["HI 01 authenticated"])
      let refused = try await pack.verdict(Name.ann, mutation("update", 1, ["title": "forbidden"]))
      #expect(refused.bare == .rejected("CONSTRAINT") && refused.row["title"] == "HI 01 authenticated")
    }
  }

  /// Rows that may be read but not written are refused with the row: it is not lost to the caller.
  @Test func readableRowsThatMayNotBeWrittenStay() async throws {
    try await Self.with { pack in
      try await pack.sql(
        """
        drop policy own on public.todos;
        create policy reading on public.todos for select to authenticated using (true);
        create policy writing on public.todos for update to authenticated using (owner_id = auth.uid());
        """)
      for op in ["update", "delete"] {
        let verdict = try await pack.verdict(Name.bob, mutation(op, 1, op == "delete" ? [:] : ["title": "x"]))
        #expect(verdict.bare == .rejected("RLS_DENIED") && verdict.row["title"] == "one")
      }
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["title": "x"])) == .applied)
    }
  }

  @Test func guardsRefuseTheWholeRequest() async throws {
    try await Self.with { pack in
      let good = mutation("update", 1, ["title": "x"])
      for wrong in [
        5, [:], mutation("upsert", 1), mutation("update", 1, ["title": "x"], id: "no uuid"),
        mutation("update", 1, [:], ["pk": ""]), mutation("update", 1, [:], ["pk": .string(Name.row(1).uppercased())]),
        mutation("insert", 1, [:], ["transforms": ["n": ["op": "increment", "by": 1]]]),
        mutation("update", 1, [:], ["transforms": ["n": ["op": "increment", "by": "1.5"]]]),
        mutation("update", 1, [:], ["transforms": ["labels": ["op": "arrayUnion", "values": []]]]),
        mutation("update", 1, [:], ["transforms": ["n": ["op": "multiply", "by": 2]]]),
      ] as [JSONValue] {
        do {
          _ = try await pack.push(Name.ann, good, wrong)
          Issue.record("not refused: \(JSONWriter.text(wrong))")
        } catch let failure as SQLFailure {
          #expect(failure.description.contains("mutation 2: "))
        }
      }
      #expect(try await pack.sql("select title from public.todos") == ["one"])
      #expect(try await pack.sql("select count(*) from kizunasync.verdicts") == ["0"])
      try await pack.sql("update kizunasync.settings set max_batch_size = 1")
      await #expect(throws: SQLFailure.self) { try await pack.push(Name.ann, good, good) }
      try await pack.sql("update kizunasync.settings set max_batch_size = null, require_atomic = true")
      await #expect(throws: SQLFailure.self) { try await pack.push(Name.ann, good) }
      #expect(try await pack.push(Name.ann, atomic: true, good)["verdicts"] != nil)
      try await pack.sql("update kizunasync.tables set sync_mode = 'pull-only'")
      await #expect(throws: SQLFailure.self) { try await pack.push(Name.ann, atomic: true, good) }
    }
  }

  @Test func truncateAndKeyChangesBySQLAreFollowed() async throws {
    try await Self.with { pack in
      let before = try await pack.pull(Name.ann)
      try await pack.sql("update public.todos set id = '\(Name.row(2))'")
      let moved = try await pack.pull(Name.ann, before["cursor"]?.stringValue ?? "")
      #expect(
        moved["rows"]?[0]?["pk"] == .string(Name.row(2)) && moved["tombstones"]?[0]?["pk"] == .string(Name.row(1)))
      try await pack.sql(
        "begin; insert into public.todos (id, owner_id) values ('\(Name.row(3))', '\(Name.ann)'); truncate public.todos; commit"
      )
      let emptied = try await pack.pull(Name.ann, moved["cursor"]?.stringValue ?? "")
      #expect(emptied["rows"] == [] && emptied["tombstones"]?.arrayValue?.count == 2)
    }
  }
}

extension String {
  fileprivate func replacingLast(_ text: String, with other: String) -> String {
    guard let start = indices.last(where: { self[$0...].hasPrefix(text) }) else { return self }
    return self[..<start] + other + self[start...].dropFirst(text.count)
  }
}
