import HostKit
import Testing

@testable import KizunaSync

/// Triggers of an app that fire before ours: the newest does, and those of a connection always.
@Suite struct JournalOrderTests {
  private func fixture() throws -> ReplicaFixture {
    let fixture = try ReplicaFixture(["todos": KizunaSyncTableConfig()])
    try fixture.pull([("a", ["title": "x", "n": 1])], cursor: "1")
    return fixture
  }

  private static let cases: [(trigger: String, script: String, queue: [String])] = [
    (
      "AFTER INSERT ON todos BEGIN UPDATE todos SET n = 9 WHERE id = NEW.id; END",
      "INSERT INTO todos(id, title) VALUES ('b', 'z')", ["insert b {\"title\":\"z\"}", "update b {\"n\":9}"]
    ),
    (
      "AFTER UPDATE ON todos BEGIN UPDATE todos SET n = 9 WHERE id = NEW.id AND n IS NOT 9; END",
      "UPDATE todos SET title = 'y'", ["update a {\"title\":\"y\"}", "update a {\"n\":9}"]
    ),
    (
      "AFTER UPDATE ON todos WHEN NEW.n < 4 BEGIN UPDATE todos SET n = NEW.n + 1 WHERE id = NEW.id; END",
      "PRAGMA recursive_triggers = 1; UPDATE todos SET title = 'y', n = 2",
      ["update a {\"n\":2,\"title\":\"y\"}", "update a {\"n\":3}", "update a {\"n\":4}"]
    ),
    (
      "AFTER DELETE ON todos BEGIN INSERT INTO todos(id, title) VALUES (OLD.id, 'back'); END",
      "DELETE FROM todos", ["update a {\"n\":null,\"title\":\"back\"}"]
    ),
    (
      "AFTER INSERT ON todos WHEN NEW.n = 0 BEGIN DELETE FROM todos WHERE id = NEW.id; END",
      "INSERT INTO todos(id, n) VALUES ('b', 0), ('c', 1)", ["insert c {\"n\":1}"]
    ),
    // There and back again, which is in order already.
    (
      "AFTER INSERT ON todos BEGIN SELECT 1; END", "UPDATE todos SET n = 2; UPDATE todos SET n = 1",
      ["update a {\"n\":2}", "update a {\"n\":1}"]
    ),
  ]

  @Test(arguments: cases.indices, ["TEMP", ""])
  func theChangeComesBeforeWhatItSetsOff(index: Int, kind: String) throws {
    let fixture = try fixture()
    let (trigger, script, queue) = Self.cases[index]
    try fixture.sql("CREATE \(kind) TRIGGER own \(trigger); \(script)")
    #expect(try fixture.queue() == queue)
    #expect(try fixture.replica.brokenInvariants() == [])
  }

  /// Wherever a batch of the harvest ends.
  @Test(arguments: [0, 1, 2]) func aStatementIsNotPartedByABatch(offset: Int) throws {
    let fixture = try fixture()
    try fixture.sql(
      """
      CREATE TEMP TRIGGER own AFTER INSERT ON todos WHEN NEW.n > 0 BEGIN
        UPDATE todos SET n = -1, title = 'first' WHERE id = NEW.id; UPDATE todos SET title = 'second' WHERE id = NEW.id;
      END;
      """ + (0..<offset).map { "INSERT INTO todos(id) VALUES ('offset\($0)');" }.joined()
        + """
        WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 700)
        INSERT INTO todos(id, n) SELECT 'k' || i, i FROM k;
        """)
    _ = try fixture.queue()
    let entries = try fixture.replica.take(limit: 5_000).entries.filter { $0.pk.hasPrefix("k") }
    #expect(entries.count == 2_100)
    let byKey = Dictionary(grouping: entries, by: \.pk)
    #expect(byKey.values.allSatisfy { $0.map(\.op) == [.insert, .update, .update] })
    #expect(byKey.values.allSatisfy { $0.last?.columns.contains("second") == true })
  }

  /// A parent is sent before the child that its trigger makes.
  @Test func oursAreTheNewestAgainOnceAnotherIsSeen() throws {
    let fixture = try ReplicaFixture(["lists": KizunaSyncTableConfig(), "todos": KizunaSyncTableConfig()])
    try fixture.sql(
      "CREATE TRIGGER own AFTER INSERT ON lists BEGIN INSERT INTO todos(id) VALUES ('first of ' || NEW.id); END")
    try fixture.replica.transaction {}
    try fixture.sql("INSERT INTO lists(id) VALUES ('l')")
    #expect(try fixture.queue() == ["insert l {}", "insert first of l {}"])
  }
}
