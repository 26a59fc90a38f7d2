import HostKit
import PostgresTestSupport
import Testing

/// What is forgotten, and what clients are told then.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct RetentionTests {
  @Test func aReapedCheckpointExpires() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql("insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)')")
      let before = try await pack.pull(Name.ann)
      let (first, second) = (try await pack.cursor(1), try await pack.cursor(2))
      #expect(before["cursor"] == .string(first))
      try await pack.sql("delete from public.todos")
      #expect(try await pack.sql("select kizunasync.reap_tombstones()") == ["0"])
      try await pack.sql("update kizunasync.changes set deleted_at = deleted_at - interval '31 days'")
      #expect(
        try await pack.sql("begin; set local role service_role; select kizunasync.reap_tombstones(); commit") == ["1"])
      let expired = try await pack.pull(Name.ann, first)
      #expect(expired["signal"] == ["type": "CHECKPOINT_EXPIRED"] && expired["cursor"] == .string(first))
      #expect(expired["rows"] == [] && expired["has_more"] == false)
      // The horizon stays past what was reaped: who starts afresh is not sent back again.
      let fresh = try await pack.pull(Name.ann)
      #expect(fresh["cursor"] == .string(second) && fresh["signal"] == .null)
      #expect(try await pack.pull(Name.ann, second)["signal"] == .null)
      // Once nobody remembers the deletion, the key is free.
      #expect(try await pack.verdict(Name.ann, mutation("insert", 1, ["owner_id": .string(Name.ann)])) == .applied)
    }
  }

  @Test func aDeletedRowStaysDeletedForPushes() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(
        "insert into public.todos (id, owner_id) select ('\(Name.id("e1", 0).prefix(35))' || i)::uuid, '\(Name.ann)' from generate_series(1, 2) as i"
      )
      _ = try await pack.pull(Name.ann)
      try await pack.sql("delete from public.todos")
      for op in ["insert", "update", "delete"] {
        #expect(
          try await pack.verdict(Name.ann, mutation(op, 1, op == "delete" ? [:] : ["title": "x"]))
            == .rejected("DELETE_WINS"))
        // Who was never given a row of that bucket learns nothing.
        #expect(
          try await pack.verdict(Name.bob, mutation(op, 1, op == "delete" ? [:] : ["title": "x"]))
            == .rejected("RLS_DENIED"))
      }
      try await pack.sql("insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)')")
      #expect(try await pack.verdict(Name.ann, mutation("update", 1, ["title": "x"])) == .applied)
    }
  }

  @Test func verdictsAndClientsArePruned() async throws {
    try await PackDatabase.withTodos(", register_clients => true") { pack in
      let id = Name.mutation()
      let insert = mutation("insert", 1, ["owner_id": .string(Name.ann), "n": 1], id: id)
      let client = Name.id("c1", 1)
      func pull(_ user: String, _ client: String) async throws -> JSONValue {
        try await pack.call(
          "pull",
          [
            "buckets": [["table": "todos", "params": ["owner_id": .string(user)]]], "cursor": "0", "schema_version": 1,
            "client_id": .string(client),
          ], as: user)
      }
      #expect(try await pack.verdict(Name.ann, insert) == .applied)
      _ = try await pull(Name.ann, client)
      #expect(
        try await pack.sql("select user_id, cursor, schema_version from kizunasync.clients")
          == ["\(Name.ann)|\(pack.cursor(1))|1"])
      await #expect(throws: SQLFailure.self) { try await pull(Name.bob, client) }

      try await pack.sql("update kizunasync.settings set max_clients_per_user = 3")
      for n in 2...5 { _ = try await pull(Name.ann, Name.id("c1", n)) }
      #expect(
        try await pack.sql("select client_id from kizunasync.clients order by 1") == (3...5).map { Name.id("c1", $0) })

      try await pack.sql(
        """
        update kizunasync.verdicts set decided_at = decided_at - interval '91 days';
        update kizunasync.clients set last_seen = last_seen - interval '91 days';
        """)
      #expect(try await pack.sql("select kizunasync.prune_clients()") == ["3"])
      #expect(try await pack.sql("select count(*) from kizunasync.verdicts") == ["0"])
    }
  }

  @Test func compactionForgetsTablesThatAreNotSynced() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql("insert into public.todos (id, owner_id) values ('\(Name.row(1))', '\(Name.ann)')")
      #expect(try await pack.sql("select kizunasync.compact_changelog()") == ["0"])
      try await pack.sql("drop table public.todos")
      #expect(try await pack.pull(Name.ann)["rows"] == [])
      await #expect(throws: SQLFailure.self) { try await pack.push(Name.ann, mutation("update", 1, ["title": "x"])) }
      try await pack.sql("delete from kizunasync.tables")
      #expect(try await pack.sql("select kizunasync.compact_changelog()") == ["1"])
    }
  }
}
