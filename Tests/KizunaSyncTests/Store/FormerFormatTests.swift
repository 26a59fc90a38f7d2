import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Files that earlier releases wrote.
///
/// `Format2.sql` is one of format 2 that had read `a` to `e` and `n` and in which nobody had harvested since then: `f` took
/// the place of `a` by the unique index on `n`, `b` was replaced, `c` changed and `d` deleted in a group, `e` changed twice,
/// the second time in a group of the same name, and an insert of another program was ignored.
@Suite struct FormerFormatTests {
  private static let todos = ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))]
  private static let both = todos.merging(["notes": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))]) { a, _ in a }

  /// A file of format 2 beside the server it was in step with.
  private static func withFile(
    _ tables: [String: KizunaSyncTableConfig], _ script: String = "", _ body: (SyncedFile) async throws -> Void
  ) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(of: SyncedFile(folder, both), tables)
      for (index, pk) in ["a", "b", "c", "d", "e"].enumerated() {
        try await file.serve(pk, ["title": .string("old \(pk)"), "n": .int(index + 1)])
      }
      try await file.serve("n", ["text": "note"], in: "notes")
      let sql = try PlainDatabase(file.path)
      try sql.run(String(decoding: PackageResources.Format2_sql, as: UTF8.self) + script)
      sql.close()
      try await body(file)
    }
  }

  @Test func whatWasWrittenBeforeTheUpgradeIsSentAndCaptureGoesOn() async throws {
    try await Self.withFile(Self.both) { file in
      try await file.sync()
      #expect(try file.sql.texts("SELECT value FROM _kizunasync_meta WHERE key = 'version'") == ["3"])
      #expect(try file.sql.texts("SELECT 1 FROM sqlite_schema WHERE name = '_kizunasync_outbox_waiting'") == ["1"])
      #expect(try file.rows() == ["b:again", "c:grouped", "e:alone", "f:new"])
      try await file.sync()
      // That it was displaced only a note told: it is read again, and waits where the index has no place for it.
      #expect(await file.server.row("todos", "a")?["title"] == "old a")
      #expect(try file.sql.texts("SELECT pk FROM _kizunasync_parked") == ["a"])
      #expect(await file.server.row("todos", "b")?["title"] == "again")
      #expect(await file.server.row("todos", "c")?["title"] == "grouped")
      #expect(await file.server.row("todos", "d") == nil)
      #expect(await file.server.row("todos", "e")?["n"] == 50)
      #expect(await file.server.row("todos", "f")?["owner_id"] == .string(owner))
      #expect(await file.server.row("notes", "n")?["text"] == "held")
      try file.sql.run(
        "INSERT OR REPLACE INTO todos(id, title, n) VALUES ('g', 'displaces', 50); BEGIN;"
          + "INSERT INTO _kizunasync_group VALUES ('g'); UPDATE todos SET title = 'x'; DELETE FROM _kizunasync_group; COMMIT"
      )
      try await file.sync()
      #expect(try file.rows() == ["b:x", "c:x", "f:x", "g:x"])
      #expect(await file.server.row("todos", "a")?["title"] == "old a")
      #expect(await file.server.row("todos", "e") == nil)
      #expect(await file.server.row("todos", "g")?["title"] == "x")
      #expect(try file.sql.texts("SELECT 1 FROM _kizunasync_outbox") == [])
      #expect(try file.sql.texts("SELECT base_seq FROM _kizunasync_displaced") == [])
    }
  }

  @Test func groupsAreThoseThatThereWere() async throws {
    try await Self.withFile(Self.both) { file in
      let fixture = try ReplicaFixture(Self.both, path: file.path)
      defer { fixture.replica.close() }
      try fixture.replica.harvestNow()
      let entries = try fixture.database.map(OutboxEntry.selection + " ORDER BY seq", [], OutboxEntry.init)
      #expect(
        entries.map { "\($0.op) \($0.pk) \($0.group ?? "")" } == [
          "insert f ", "insert b ", "update c g#9", "delete d g#9", "update e ", "update e g#14", "update n ",
        ])
    }
  }

  /// A transaction that is all-or-nothing stays it across the upgrade, if its writer forgot to end it.
  @Test func anOpenGroupStaysOpen() async throws {
    try await Self.withFile(Self.both, "INSERT INTO _kizunasync_group VALUES ('open');") { file in
      let fixture = try ReplicaFixture(Self.both, path: file.path)
      defer { fixture.replica.close() }
      #expect(try fixture.database.exists("SELECT 1 FROM _kizunasync_displaced WHERE base_seq = -2"))
    }
  }

  @Test func columnsRenamedBeforeTheUpgradeAreFollowed() async throws {
    try await Self.withFile(Self.todos, "ALTER TABLE todos RENAME COLUMN title TO name;") { file in
      let fixture = try ReplicaFixture(Self.todos, path: file.path)
      defer { fixture.replica.close() }
      #expect(try fixture.queue().contains(#"update c {"name":"grouped"}"#))
    }
  }

  /// A table that is not configured keeps the triggers of that format. They capture, and hold still while the gateway
  /// itself empties the table.
  @Test func tablesThatAreNotConfiguredAreHeldAndCapturedUntilTheyAre() async throws {
    try await Self.withFile(Self.todos) { file in
      try await file.sync()
      #expect(await file.server.row("notes", "n")?["text"] == "note")
      try file.sql.run("UPDATE notes SET text = text || ', more'; INSERT INTO notes(id, text) VALUES ('m', 'new')")
      try await file.sync()
      let again = SyncedFile(of: file, Self.both)
      try await again.sync()
      try await again.sync()
      #expect(await again.server.row("notes", "n")?["text"] == "held, more")
      #expect(await again.server.row("notes", "m")?["text"] == "new")
    }
  }

  @Test func aResetDeletesNothingOnTheServer() async throws {
    try await Self.withFile(Self.todos) { file in
      try await file.sync()
      try await file.engine { engine in
        try await engine.reset()
        try await engine.sync()
      }
      #expect(try file.rows("notes", "text") == [])
      let again = SyncedFile(of: file, Self.both)
      try await again.sync()
      try await again.sync()
      #expect(await again.server.row("notes", "n")?["text"] == "note")
      #expect(try again.rows("notes", "text") == ["n:note"])
    }
  }

  /// Format 1 has the triggers of today. A release of format 2 left them on tables that were not configured.
  @Test(arguments: [1, 2]) func triggersOfFormat1GoOn(format: Int) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.sync()
      try file.sql.run(
        "UPDATE _kizunasync_meta SET value = \(format) WHERE key = 'version'; INSERT INTO todos(id, title) VALUES ('a', 'x')"
      )
      try await file.sync()
      #expect(await file.server.row("todos", "a")?["title"] == "x")
      #expect(try file.sql.texts("SELECT value FROM _kizunasync_meta WHERE key = 'version'") == ["3"])
      #expect(!file.events.contains("store.writes_unseen"))
    }
  }
}
