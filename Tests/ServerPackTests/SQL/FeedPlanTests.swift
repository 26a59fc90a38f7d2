import HostKit
import PostgresTestSupport
import Testing

/// A page and a push cost what is in them, however long the log is and whatever other buckets hold.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct FeedPlanTests {
  /// What a look at the catalogs may meet; the log and the table hold twenty times as much.
  private static let catalogRows = 1000

  private static let rows = """
    insert into public.todos (id, owner_id)
    select ('\(Name.id("e1", 0).prefix(26))' || lpad(i::text, 10, '0'))::uuid,
      case when i % 2 = 0 then '\(Name.ann)' else '\(Name.bob)' end::uuid
    from generate_series(1, 20000) as i;
    delete from public.todos where owner_id = '\(Name.bob)' and id > '\(Name.row(16000))';

    """

  @Test(arguments: ["", "analyze;"])
  func aPageReadsByIndexAndOnlyWhatItNeeds(statistics: String) async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(Self.rows + statistics)
      let request: JSONValue = [
        "buckets": [["table": "todos", "params": ["owner_id": .string(Name.ann)]]],
        "cursor": .string(try await pack.cursor(10_000)), "limit": 100, "schema_version": 1,
      ]
      let plan = try await Plans(pack, "pull", request)
      #expect(plan.text.contains("Index Scan using changes_feed on changes"))
      #expect(plan.text.contains("Index Scan using todos_pkey on todos"))
      #expect(!plan.text.contains("Seq Scan on changes") && !plan.text.contains("Seq Scan on todos"))
      #expect(plan.count > 20 && plan.mostRows <= Self.catalogRows && plan.mostThrownAway <= Self.catalogRows)

      // The last page also looks up the horizon.
      let last = try await Plans(
        pack, "pull",
        .object((request.objectValue ?? [:]).merging(["cursor": .string(try await pack.cursor(19_990))]) { $1 }))
      #expect(last.text.contains("using changes_newest on changes"))
      #expect(last.mostRows <= Self.catalogRows && last.mostThrownAway <= Self.catalogRows)
    }
  }

  @Test(arguments: ["", "analyze;"])
  func aPushReachesRowsAndLogByKey(statistics: String) async throws {
    try await PackDatabase.withTodos(", conflict_journal => true") { pack in
      try await pack.sql(
        Self.rows + """
          insert into kizunasync.overwrites (table_name, pk, column_name, loser_value, winner_mutation_id, winner_seq, conflict_mode)
          select 'todos', c.pk, 'title', '1', gen_random_uuid(), c.seq, 'arrival' from kizunasync.changes as c;
          \(statistics)
          """)
      let mutations = [
        mutation("update", 100, ["title": "x"]), mutation("delete", 200), mutation("update", 16001, ["title": "x"]),
        mutation("insert", 30000, ["owner_id": .string(Name.ann)]),
      ]
      let plan = try await Plans(pack, "push", PackDatabase.request(mutations))
      #expect(plan.count > 50 && plan.mostRows <= Self.catalogRows && plan.mostThrownAway <= Self.catalogRows)
      #expect(!plan.text.contains("Seq Scan on changes") && !plan.text.contains("Seq Scan on todos"))
    }
  }

  /// The plans of all statements of a call, those in functions too, with the rows that each step has met.
  private struct Plans {
    let text: String
    let count: Int
    let mostRows: Int
    let mostThrownAway: Int

    init(_ pack: PackDatabase, _ function: String, _ request: JSONValue) async throws {
      let lines = try await pack.database.messages(
        """
        load 'auto_explain';
        set auto_explain.log_min_duration = 0;
        set auto_explain.log_nested_statements = on;
        set auto_explain.log_analyze = on;
        set auto_explain.log_timing = off;
        set client_min_messages = log;

        """ + PackDatabase.callText(function, request, as: Name.ann))
      text = lines.joined(separator: "\n")
      let rows = lines.compactMap { Self.number(in: $0, after: "(actual rows=") }
      count = rows.count
      mostRows = rows.max() ?? 0
      mostThrownAway = lines.compactMap { Self.number(in: $0, after: "Rows Removed by Filter: ") }.max() ?? 0
    }

    private static func number(in line: String, after marker: String) -> Int? {
      guard let start = line.indices.first(where: { line[$0...].hasPrefix(marker) }) else { return nil }
      return Int(line[start...].dropFirst(marker.count).prefix { $0.isNumber })
    }
  }
}
