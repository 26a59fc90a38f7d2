import HostKit
import PostgresTestSupport
import ServerPack
import Testing

/// A log that is another than the one clients have a cursor of: they are told to read everything again, and are never
/// answered with an empty page for ever.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct LogReplacedTests {
  private static let expired: JSONValue = ["type": "CHECKPOINT_EXPIRED"]
  private static let again = "select kizunasync.sync_table('todos', bucket_column => 'owner_id')"

  private static func insert(_ rows: ClosedRange<Int>) -> String {
    "insert into public.todos (id, owner_id) values "
      + rows.map { "('\(Name.row($0))', '\(Name.ann)')" }.joined(separator: ", ")
  }

  private static func keys(_ page: JSONValue) -> [String] {
    (page["rows"]?.arrayValue ?? []).compactMap { $0["pk"]?.stringValue }
  }

  private static func cursor(_ page: JSONValue) throws -> String { try #require(page["cursor"]?.stringValue) }

  /// The answer to an expired cursor is the one of the contract, and reading from the start ends at a cursor that holds.
  private static func checkExpired(_ pack: PackDatabase, _ cursor: String) async throws {
    #expect(
      try await pack.pull(Name.ann, cursor) == [
        "rows": [], "tombstones": [], "cursor": .string(cursor), "has_more": false, "signal": expired,
      ], "\(cursor)")
    let fresh = try await pack.pull(Name.ann)
    #expect(fresh["signal"] == .null)
    #expect(keys(fresh).sorted() == (try await pack.sql("select id from public.todos order by id")))
    let next = try await pack.pull(Name.ann, Self.cursor(fresh))
    #expect(next["signal"] == .null && keys(next) == [] && next["cursor"] == fresh["cursor"])
  }

  /// Removed and provisioned again, with and without the rows.
  @Test(arguments: [1...3, 1...20])
  func removedAndMadeAgain(rows: ClosedRange<Int>) async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(Self.insert(1...9))
      let old = try Self.cursor(try await pack.pull(Name.ann))
      let unfinished = try Self.cursor(try await pack.pull(Name.ann, limit: 2))
      #expect(unfinished.hasPrefix("0:"))
      try await pack.database.run(ServerPack.deprovision, inOneTransaction: true)
      try await pack.sql("delete from public.todos")
      try await pack.database.run(ServerPack.migration, inOneTransaction: true)
      try await pack.sql(Self.again)
      try await Self.checkExpired(pack, old)
      // More or fewer changes than before make no difference.
      try await pack.sql(Self.insert(rows))
      for cursor in [old, unfinished, "\(old):\(old)"] { try await Self.checkExpired(pack, cursor) }
    }
  }

  /// A database that holds no rows at all still has a cursor of its own.
  @Test func anEmptyLogHasACursorThatHolds() async throws {
    try await PackDatabase.withTodos { pack in
      let page = try await pack.pull(Name.ann)
      #expect(page["signal"] == .null && page["has_more"] == false)
      let cursor = try Self.cursor(page)
      #expect(try #require(Int64(cursor)) > 1_000_000_000_000_000)
      #expect(try await pack.pull(Name.ann, cursor)["signal"] == .null)
      try await pack.sql(Self.insert(1...2))
      #expect(Self.keys(try await pack.pull(Name.ann, cursor)) == [Name.row(1), Name.row(2)])
      for ahead in ["9007199254740991", "9223372036854775807", "0:9007199254740991", "12:9007199254740991"] {
        #expect(try await pack.pull(Name.ann, ahead)["signal"] == Self.expired, "\(ahead)")
      }
    }
  }

  /// A dump that is restored knows nothing of the seqs given out since. Writes that go on at once hide that from whoever
  /// only looks whether the log ends before the cursor.
  @Test func restoredFromADump() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(Self.insert(1...3))
      let saved = try Self.cursor(try await pack.pull(Name.ann))
      let dump = try await pack.database.dump()
      try await pack.sql(Self.insert(4...6))
      let lost = try Self.cursor(try await pack.pull(Name.ann))
      try await PostgresCluster.shared.withDatabase { copy in
        try await copy.run(dump.joined(separator: "\n"))
        let restored = PackDatabase(database: copy)
        let plan = ProvisionPlan(tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"))])
        #expect(try await restored.sql(plan.check).contains { $0.hasPrefix("the database is a copy") })
        try await restored.sql(Self.insert(11...19))
        for cursor in [lost, saved] { try await Self.checkExpired(restored, cursor) }
        #expect(try await !restored.sql(plan.check).contains { $0.hasPrefix("the database is a copy") })
      }
    }
  }

  /// What shows nowhere in the database, such as a snapshot of the disk that was put back.
  @Test func expiredByHand() async throws {
    try await PackDatabase.withTodos { pack in
      try await pack.sql(Self.insert(1...3))
      let old = try Self.cursor(try await pack.pull(Name.ann))
      try await pack.sql("select kizunasync.expire_cursors()")
      try await Self.checkExpired(pack, old)
    }
  }

  /// Entries of the end of the log that are gone still count: their seqs were seen.
  @Test func aTableThatIsSyncedNoMoreExpiresNobody() async throws {
    for forget in [
      "select kizunasync.unsync_table('notes')",
      "drop table public.notes; delete from kizunasync.tables where table_name = 'notes'; select kizunasync.compact_changelog()",
    ] {
      try await PackDatabase.withTodos { pack in
        try await pack.sql(
          """
          create table public.notes (id integer primary key); alter table public.notes enable row level security;
          select kizunasync.sync_table('notes');
          \(Self.insert(1...2)); insert into public.notes select generate_series(1, 5);
          """)
        let cursor = try Self.cursor(try await pack.pull(Name.ann))
        try await pack.sql(forget)
        #expect(try await pack.pull(Name.ann, cursor)["signal"] == .null)
        // The sequence is lost too, and no seq is given out twice.
        try await pack.sql("alter sequence kizunasync.seq restart; \(Self.insert(3...3))")
        #expect(Self.keys(try await pack.pull(Name.ann, cursor)) == [Name.row(3)])
      }
    }
  }

  @Test func aSequenceThatWasSetBackGoesOnAtTheEndOfTheLog() async throws {
    try await PackDatabase.withTodos { pack in
      let plan = ProvisionPlan(tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"))])
      try await pack.sql(plan.script)
      try await pack.sql(Self.insert(1...3))
      let cursor = try Self.cursor(try await pack.pull(Name.ann))
      try await pack.sql("alter sequence kizunasync.seq restart")
      #expect(try await pack.sql(plan.check).contains { $0.hasPrefix("sequence kizunasync.seq was set back") })
      try await pack.sql(Self.insert(4...4))
      #expect(try await pack.sql(plan.check) == [])
      #expect(Self.keys(try await pack.pull(Name.ann, cursor)) == [Name.row(4)])

      try await pack.sql("drop sequence kizunasync.seq")
      #expect(try await pack.sql(plan.check).contains { $0.hasPrefix("sequence kizunasync.seq is missing") })
      await #expect(throws: SQLFailure.self) { try await pack.sql(Self.insert(5...5)) }
      try await pack.sql(plan.script)
      #expect(try await pack.sql(plan.check) == [])
      try await pack.sql(Self.insert(5...5))
      #expect(Self.keys(try await pack.pull(Name.ann, cursor)) == [Name.row(4), Name.row(5)])
    }
  }

  /// A project that an earlier release provisioned keeps its cursors, whose seqs began at 1.
  @Test func anEarlierReleaseIsBroughtUpToDate() async throws {
    try await PackDatabase.withTodos(", conflict_journal => true") { pack in
      let plan = ProvisionPlan(tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"))])
      try await pack.sql(Self.insert(1...3))
      try await pack.sql("alter table kizunasync.horizon drop column base, drop column highest, drop column place")
      #expect(try await pack.sql(plan.script) == ["todos: unchanged"])
      let once = try await pack.database.dump()
      #expect(try await pack.sql(plan.script) == ["todos: unchanged"])
      #expect(try await pack.database.dump() == once)
      #expect(try await pack.sql(plan.check) == [])
      let page = try await pack.pull(Name.ann, "1")
      #expect(Self.keys(page) == [Name.row(2), Name.row(3)] && page["cursor"] == "3")
      #expect(try await pack.verdict(Name.ann, mutation("update", 2, ["title": "x"])) == .applied)
      #expect(try await pack.verdict(Name.ann, mutation("update", 2, ["title": "y"])) == .applied)
      let conflicts = try await pack.pull(Name.ann, "3")["conflicts"]?.arrayValue
      #expect(conflicts?.map { $0["winner_seq"] } == ["5"])
      try await pack.sql("delete from kizunasync.horizon")
      #expect(try await pack.sql(plan.check).contains { $0.hasPrefix("table kizunasync.horizon is empty") })
      try await pack.sql(plan.script)
      try await Self.checkExpired(pack, "5")
    }
  }
}
