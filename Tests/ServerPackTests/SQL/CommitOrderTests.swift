import HostKit
import PostgresTestSupport
import Testing

/// Seqs are in the order of commits, so a cursor never goes past a change that becomes visible later. With real sessions.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct CommitOrderTests {
  private func ids(_ answer: JSONValue) -> [String] {
    (answer["rows"]?.arrayValue ?? []).compactMap { $0["pk"]?.stringValue }
  }

  private func insert(_ n: Int) -> String {
    "insert into public.todos (id, owner_id) values ('\(Name.row(n))', '\(Name.ann)')"
  }

  @Test func aLateCommitIsDelivered() async throws {
    try await PackDatabase.withTodos { pack in
      let long = try pack.database.session()
      try await long.run("begin; \(insert(1))")
      try await pack.sql(insert(2))
      let early = try await pack.pull(Name.ann)
      #expect(ids(early) == [Name.row(2)])
      try await long.run("commit")
      let cursor = try #require(early["cursor"]?.stringValue)
      #expect(ids(try await pack.pull(Name.ann, cursor)) == [Name.row(1)])
      await long.end()
    }
  }

  /// A transaction that has drawn its seqs and is not yet committed holds up the others, and no reader sees past it.
  @Test func aSlowCommitHoldsUpOthersAndNoReader() async throws {
    try await PackDatabase.withTodos { pack in
      let slow = try pack.database.session()
      // Asking for deferred checks at once draws the seqs while the transaction goes on.
      try await slow.run("begin; set constraints all immediate; \(insert(1))")
      let other = try pack.database.session()
      let waiting = try await other.send(insert(2))
      try await pack.database.waitForLock("advisory")
      #expect(ids(try await pack.pull(Name.ann)) == [])
      try await slow.run("\(insert(3)); commit")
      _ = try await waiting.rows()
      let all = try await pack.pull(Name.ann)
      #expect(ids(all) == [Name.row(1), Name.row(3), Name.row(2)])
      await slow.end()
      await other.end()
    }
  }

  @Test func aPreparedTransactionKeepsItsPlace() async throws {
    try await PackDatabase.withTodos { pack in
      // The scaffolding announces messages by NOTIFY, which a prepared transaction cannot do.
      try await pack.sql("drop trigger announce_message on realtime.messages")
      try await pack.sql("begin; \(insert(1)); prepare transaction '\(pack.database.name)'")
      let other = try pack.database.session()
      let waiting = try await other.send(insert(2))
      try await pack.database.waitForLock("advisory")
      let early = try await pack.pull(Name.ann)
      #expect(ids(early) == [])
      try await pack.sql("commit prepared '\(pack.database.name)'")
      _ = try await waiting.rows()
      #expect(
        ids(try await pack.pull(Name.ann, try #require(early["cursor"]?.stringValue))) == [Name.row(1), Name.row(2)])
      await other.end()
    }
  }

  /// The lock is taken after every other deferred check: else one transaction would hold it while it waits for a row of
  /// another that waits for the lock.
  @Test func theLockIsTheLastThingATransactionWaitsFor() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(
        """
        create table public.parents (id integer primary key);
        create table public.children (id integer primary key,
          parent_id integer references public.parents deferrable initially deferred);
        insert into public.parents values (1);
        """)
      let checking = try pack.database.session()
      let holding = try pack.database.session()
      try await holding.run("begin; select id from public.parents where id = 1 for update; \(insert(1))")
      // Its own rows come first, so that its events are in the queue before the check of the foreign key.
      try await checking.run("begin; \(insert(2)); insert into public.children values (1, 1)")
      let committing = try await checking.send("commit")
      try await pack.database.waitForLock("transactionid")
      try await holding.run("commit")
      _ = try await committing.rows()
      #expect(ids(try await pack.pull(Name.ann)) == [Name.row(1), Name.row(2)])
      await checking.end()
      await holding.end()
    }
  }

  /// Writers in long and short transactions, with savepoints and reversals, while a reader follows by cursor: what it
  /// has collected in the end is the table.
  @Test func aFollowerMissesNothing() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(
        "insert into public.todos (id, owner_id) select ('\(Name.id("e1", 0).prefix(26))' || lpad(i::text, 10, '0'))::uuid, '\(Name.ann)' from generate_series(1, 40) as i"
      )
      let writing = Locked(4)
      let follower = Follower()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<4 {
          group.addTask {
            defer { writing.withLock { $0 -= 1 } }
            try await Self.write(pack, SeededRandom(UInt64(writer) + 7), writer)
          }
        }
        group.addTask {
          while writing.withLock({ $0 }) > 0 { try await follower.step(pack) }
        }
        try await group.waitForAll()
      }
      try await follower.step(pack)
      let table = try await pack.sql(
        "select id || ' ' || n from public.todos where owner_id = '\(Name.ann)' order by id")
      #expect(await follower.lines == table)
    }
  }

  private static func write(_ pack: PackDatabase, _ random: SeededRandom, _ writer: Int) async throws {
    var random = random
    let session = try pack.database.session()
    for round in 0..<25 {
      var text = "begin;"
      // One row per writer and residue, in ascending order: writers meet, but never in a circle.
      for row in Set((0..<3).map { _ in Int.random(in: 1...40, using: &random) }).sorted() {
        let place = "where id = '\(Name.row(row))'"
        switch Int.random(in: 0..<6, using: &random) {
        case 0: text += "savepoint s; update public.todos set n = -1 \(place); rollback to s; release s;"
        case 1:
          text +=
            "update public.todos set owner_id = case owner_id when '\(Name.ann)' then '\(Name.bob)' else '\(Name.ann)' end::uuid \(place);"
        case 2: text += "delete from public.todos \(place);"
        case 3:
          text +=
            "insert into public.todos (id, owner_id, n) values ('\(Name.row(row))', '\(Name.ann)', \(round)) on conflict (id) do update set n = excluded.n;"
        default: text += "update public.todos set n = \(writer * 1000 + round) \(place);"
        }
      }
      // Some transactions stay open across statements of the others.
      if round % 3 == 0 { text += "select pg_sleep(0.02);" }
      try await session.run(text + (round % 7 == 0 ? "rollback" : "commit"))
    }
    await session.end()
  }
}

/// A client that keeps only rows and a cursor.
private actor Follower {
  private var cursor = "0"
  private var rows: [String: String] = [:]

  var lines: [String] { rows.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" } }

  func step(_ pack: PackDatabase) async throws {
    var hasMore = true
    while hasMore {
      let page = try await pack.pull(Name.ann, cursor, limit: 7)
      for row in page["rows"]?.arrayValue ?? [] {
        rows[row["pk"]?.stringValue ?? ""] = row["row"]?["n"]?.numberValue?.lexeme
      }
      for tombstone in page["tombstones"]?.arrayValue ?? [] { rows[tombstone["pk"]?.stringValue ?? ""] = nil }
      cursor = page["cursor"]?.stringValue ?? cursor
      hasMore = page["has_more"] == true
    }
  }
}

extension TestDatabase {
  /// Returns when a session of this database waits for a lock of this kind.
  fileprivate func waitForLock(_ kind: String) async throws {
    _ = try await run(
      """
      do $$
      begin
        for i in 1..3000 loop
          perform pg_stat_clear_snapshot();
          if exists (
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = '\(kind)'
          ) then
            return;
          end if;
          perform pg_sleep(0.01);
        end loop;
        raise exception 'nobody waits for a lock';
      end $$
      """)
  }
}
