import HostKit
import Testing

@testable import KizunaSync

/// Rows that `OR REPLACE` deletes without a word are deleted on the server too.
@Suite struct DisplacedRowTests {
  private func withFixture(
    _ script: String, tables: [String: KizunaSyncTableConfig] = ["t": KizunaSyncTableConfig()],
    _ body: (ReplicaFixture) throws -> Void
  ) throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(tables, path: "\(folder)/a.db", preparing: script)
      defer { fixture.replica.close() }
      try body(fixture)
    }
  }

  /// Writes, and lets the server have it.
  private func send(_ fixture: ReplicaFixture, _ script: String) throws {
    try fixture.sql(script)
    let count = try fixture.queue().count
    try fixture.push(Array(repeating: nil, count: count))
    try fixture.sql("DELETE FROM _kizunasync_outbox; DELETE FROM _kizunasync_image")
  }

  @Test func keysOfSeveralColumns() throws {
    try withFixture(
      "CREATE TABLE t(a INTEGER, b TEXT, v UNIQUE, PRIMARY KEY (b, a)) WITHOUT ROWID",
      tables: ["t": KizunaSyncTableConfig(key: ["a", "b"])]
    ) { fixture in
      try send(fixture, "INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', 3)")
      try fixture.sql("INSERT OR REPLACE INTO t VALUES (4, 'x', 1); UPDATE OR REPLACE t SET a = 2, b = 'y' WHERE a = 3")
      #expect(
        try fixture.queue() == [
          #"delete ["1", "x"] {}"#, #"insert ["4", "x"] {"v":1}"#, #"delete ["3", "z"] {}"#,
          #"update ["2", "y"] {"v":3}"#,
        ])
    }
  }

  /// Rows that the partial index does not bind are noted too, however many there are.
  @Test func anIndexOfSomeRowsAmongManyOthers() throws {
    try withFixture(
      "CREATE TABLE t(id TEXT PRIMARY KEY, slug, live); CREATE UNIQUE INDEX one ON t(slug) WHERE live = 1"
    ) { fixture in
      try send(
        fixture,
        """
        INSERT INTO t VALUES ('first', 'p', 1);
        WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 300)
          INSERT INTO t SELECT 'dead' || i, 'p', 0 FROM k;
        """)
      for _ in 0..<20 { try fixture.sql("INSERT OR IGNORE INTO t VALUES ('first', 'p', 1)") }
      #expect(try fixture.database.first("SELECT count(*) FROM _kizunasync_displaced") { $0.int(0) } ?? 0 <= 301)
      try fixture.sql("INSERT OR REPLACE INTO t VALUES ('second', 'p', 1)")
      #expect(try fixture.queue() == ["delete first {}", #"insert second {"live":1,"slug":"p"}"#])
    }
  }

  /// The cascade of a displaced row is told by triggers, that it was displaced is not.
  @Test func aCascadeOfADisplacedRow() throws {
    try withFixture(
      """
      CREATE TABLE t(id TEXT PRIMARY KEY, v UNIQUE);
      CREATE TABLE child(id TEXT PRIMARY KEY, parent REFERENCES t(id) ON DELETE CASCADE);
      """, tables: ["t": KizunaSyncTableConfig(), "child": KizunaSyncTableConfig()]
    ) { fixture in
      try send(fixture, "INSERT INTO t VALUES ('a', 1), ('b', 2); INSERT INTO child VALUES ('x', 'a'), ('y', 'b')")
      for recursive in [0, 1] {
        try fixture.sql("PRAGMA recursive_triggers = \(recursive); PRAGMA foreign_keys = 1")
        try fixture.sql("INSERT OR REPLACE INTO t VALUES ('c\(recursive)', \(recursive + 1))")
      }
      try fixture.sql("PRAGMA recursive_triggers = 0; PRAGMA foreign_keys = 0")
      #expect(
        Set(try fixture.queue()) == [
          "delete x {}", "delete a {}", #"insert c0 {"v":1}"#, "delete y {}", "delete b {}", #"insert c1 {"v":2}"#,
        ])
    }
  }

  @Test func whatIsRolledBackDisplacesNothing() throws {
    try withFixture("CREATE TABLE t(id TEXT PRIMARY KEY, v UNIQUE)") { fixture in
      try send(fixture, "INSERT INTO t VALUES ('a', 1), ('b', 2)")
      try fixture.sql(
        """
        BEGIN; SAVEPOINT s; INSERT OR REPLACE INTO t VALUES ('c', 1); ROLLBACK TO s;
        INSERT INTO t VALUES ('d', 3); UPDATE OR REPLACE t SET v = 2 WHERE id = 'd'; COMMIT;
        BEGIN; INSERT OR REPLACE INTO t VALUES ('e', 1); ROLLBACK;
        """)
      try? fixture.sql("INSERT OR FAIL INTO t VALUES ('f', 4), ('g', 1)")
      #expect(try fixture.queue() == [#"insert d {"v":3}"#, "delete b {}", #"update d {"v":2}"#, #"insert f {"v":4}"#])
    }
  }

  /// It has an index whose conflicts nobody can tell.
  @Test func aTableThatCannotBeFollowedDoesNotKeepTheOthersWaiting() throws {
    try withFixture(
      "CREATE TABLE t(id TEXT PRIMARY KEY, v UNIQUE); CREATE TABLE other(id TEXT PRIMARY KEY, v)",
      tables: ["t": KizunaSyncTableConfig(), "other": KizunaSyncTableConfig()]
    ) { fixture in
      try send(fixture, "INSERT INTO t VALUES ('a', 1)")
      try fixture.sql(
        "INSERT OR REPLACE INTO t VALUES ('b', 1); CREATE UNIQUE INDEX odd ON t(lower(v)); INSERT INTO other VALUES ('x', 1)"
      )
      let queue = try fixture.queue()
      #expect(queue.contains("delete a {}") && queue.contains(#"insert x {"v":1}"#))
    }
  }
}
