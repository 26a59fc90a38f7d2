import HostKit
import Testing

@testable import KizunaSync

/// Files of format 1, whose triggers told displacement and groups themselves. At first they did not tell where a group
/// began.
@Suite struct FormerFormatTests {
  /// What the triggers of that format were for a table of the key `id`.
  private static func triggers(_ columns: [CaptureTriggers.Column], tellsGroups: Bool) -> String {
    func slots(_ kind: String) -> String { columns.map { "\(kind)\($0.slot)" }.joined(separator: ", ") }
    func values(_ prefix: String) -> String { SQL.names(columns.map(\.name), prefix: prefix) }
    let key = columns.first { $0.name == "id" }?.slot ?? 0
    let unusual = "EXISTS (SELECT 1 FROM _kizunasync_displaced WHERE ifnull(tbl, 'todos') = 'todos')"
    let active = "(SELECT applying FROM _kizunasync_ctl) = 0"
    let head = "INSERT INTO _kizunasync_capture(tbl, op, grp, at,"
    let rest = "(SELECT id FROM _kizunasync_group), julianday(),"
    return """
      CREATE TRIGGER _kizunasync_group_opens AFTER INSERT ON _kizunasync_group
        BEGIN INSERT INTO _kizunasync_displaced(base_seq) VALUES (-2);
        \(tellsGroups ? "INSERT INTO _kizunasync_capture(tbl, op, grp, at) VALUES ('', 'g', NEW.id, julianday());" : "")
        END;
      CREATE TRIGGER _kizunasync_group_ends AFTER DELETE ON _kizunasync_group
        BEGIN DELETE FROM _kizunasync_displaced WHERE base_seq = -2; END;
      CREATE TRIGGER _kizunasync_todos_before_insert BEFORE INSERT ON todos
        WHEN (EXISTS (SELECT 1 FROM todos t WHERE t.id = NEW.id) OR \(unusual)) AND \(active) BEGIN
        DELETE FROM _kizunasync_displaced WHERE tbl = 'todos';
        INSERT INTO _kizunasync_displaced(base_seq, tbl, \(slots("c")))
          SELECT coalesce((SELECT max(seq) FROM _kizunasync_capture), 0), 'todos', \(values("t.")) FROM todos t
          WHERE t.id = NEW.id; END;
      CREATE TRIGGER _kizunasync_todos_after_insert AFTER INSERT ON todos WHEN NOT \(unusual) BEGIN
        INSERT INTO _kizunasync_capture(tbl, op, at, \(slots("n"))) VALUES ('todos', 'i', julianday(), \(values("NEW."))); END;
      CREATE TRIGGER _kizunasync_todos_after_insert_displacing AFTER INSERT ON todos WHEN \(unusual) AND \(active) BEGIN
        \(head) \(slots("n")), \(slots("o"))) SELECT 'todos', 'r', \(rest) \(values("NEW.")), \(slots("d.c"))
          FROM _kizunasync_displaced d WHERE d.tbl = 'todos' AND d.c\(key) IS NEW.id;
        \(head) \(slots("n"))) SELECT 'todos', 'i', \(rest) \(values("NEW."))
          WHERE NOT EXISTS (SELECT 1 FROM _kizunasync_displaced d WHERE d.tbl = 'todos' AND d.c\(key) IS NEW.id); END;
      CREATE TRIGGER _kizunasync_todos_before_update BEFORE UPDATE ON todos WHEN \(unusual) AND \(active) BEGIN
        DELETE FROM _kizunasync_displaced WHERE tbl = 'todos'; END;
      CREATE TRIGGER _kizunasync_todos_after_update AFTER UPDATE ON todos WHEN NOT \(unusual) BEGIN
        INSERT INTO _kizunasync_capture(tbl, op, at, \(slots("n")), \(slots("o")))
          VALUES ('todos', 'u', julianday(), \(values("NEW.")), \(values("OLD."))); END;
      CREATE TRIGGER _kizunasync_todos_after_update_displacing AFTER UPDATE ON todos WHEN \(unusual) AND \(active) BEGIN
        \(head) \(slots("n")), \(slots("o"))) SELECT 'todos', 'u', \(rest) \(values("NEW.")), \(values("OLD.")); END;
      CREATE TRIGGER _kizunasync_todos_after_delete AFTER DELETE ON todos WHEN \(active) BEGIN
        \(head) \(slots("o"))) SELECT 'todos', 'd', \(rest) \(values("OLD.")); END;
      """
  }

  /// A file as a release of that format left it.
  private func makeFile(_ path: String, tellsGroups: Bool, _ script: String) throws {
    let fixture = try ReplicaFixture(["todos": KizunaSyncTableConfig()], path: path)
    try fixture.pull(
      ["a", "b", "c", "d"].map { ($0, ["title": .string("old \($0)"), "n": 1]) }, cursor: "1")
    let columns = try fixture.replica.journalColumns(of: "todos")
    fixture.replica.close()
    let database = try PlainDatabase(path)
    for name in try database.texts("SELECT name FROM sqlite_schema WHERE type = 'trigger'") {
      try database.run("DROP TRIGGER \"\(name)\"")
    }
    try database.run(Self.triggers(columns, tellsGroups: tellsGroups))
    try database.run("UPDATE _kizunasync_meta SET value = 1 WHERE key = 'version'")
    try database.run(script)
  }

  @Test(arguments: [false, true]) func whatWasJournalledIsQueuedAndCaptureGoesOn(tellsGroups: Bool) throws {
    try withScratchFolder { folder in
      let path = "\(folder)/a.db"
      try makeFile(
        path, tellsGroups: tellsGroups,
        """
        INSERT OR REPLACE INTO todos(id, title) VALUES ('a', 'new');
        INSERT INTO todos(id, title) VALUES ('e', 'x');
        BEGIN; INSERT INTO _kizunasync_group VALUES ('g');
        UPDATE todos SET n = 2 WHERE id = 'b'; DELETE FROM todos WHERE id = 'c';
        DELETE FROM _kizunasync_group; COMMIT;
        UPDATE todos SET n = 3 WHERE id = 'b';
        BEGIN; INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET n = 4 WHERE id = 'b';
        DELETE FROM _kizunasync_group; COMMIT;
        INSERT OR IGNORE INTO todos(id) VALUES ('d');
        """)
      let fixture = try ReplicaFixture(["todos": KizunaSyncTableConfig()], path: path)
      #expect(try fixture.database.meta(.version) == .integer(Schema.version))
      try fixture.sql(
        "INSERT OR REPLACE INTO todos(id, title) VALUES ('d', 'newer'); INSERT INTO todos(id) VALUES ('f');"
          + "BEGIN; INSERT INTO _kizunasync_group VALUES ('h'); UPDATE todos SET n = 7 WHERE id = 'e';"
          + "DELETE FROM _kizunasync_group; COMMIT")
      #expect(
        try fixture.queue() == [
          "update a {\"n\":null,\"title\":\"new\"}", "insert e {\"title\":\"x\"}", "update b {\"n\":2}", "delete c {}",
          "update b {\"n\":3}", "update b {\"n\":4}", "update d {\"n\":null,\"title\":\"newer\"}", "insert f {}",
          "update e {\"n\":7}",
        ])
      let groups = try fixture.database.map("SELECT grp FROM _kizunasync_outbox ORDER BY seq") { $0.optionalString(0) }
      let names = groups.map { $0?.split(separator: "#").first.map(String.init) }
      #expect(names == [nil, nil, "g", "g", nil, "g", nil, nil, "h"])
      #expect(Set(groups.compactMap(\.self)).count == (tellsGroups ? 3 : 2))
      #expect(!fixture.warnings.withLock { $0 }.contains("store.writes_unseen"))
      let triggers = try fixture.database.map("SELECT name FROM sqlite_schema WHERE type = 'trigger'") { $0.string(0) }
      #expect(triggers.filter { $0.hasSuffix("displacing") || $0.hasSuffix("opens") || $0.hasSuffix("ends") } == [])
      fixture.replica.close()
    }
  }

  /// Columns are followed by the text of the triggers, whichever release made them.
  @Test func columnsRenamedBeforeTheUpdateAreFollowed() throws {
    try withScratchFolder { folder in
      let path = "\(folder)/a.db"
      try makeFile(
        path, tellsGroups: true, "UPDATE todos SET n = 5 WHERE id = 'a'; ALTER TABLE todos RENAME COLUMN n TO number"
      )
      let fixture = try ReplicaFixture(["todos": KizunaSyncTableConfig()], path: path)
      #expect(try fixture.queue() == ["update a {\"number\":5}"])
      #expect(!fixture.warnings.withLock { $0 }.contains("store.writes_unseen"))
      fixture.replica.close()
    }
  }
}
