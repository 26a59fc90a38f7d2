import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Writes that no trigger saw are found by comparing, also where the server or the queue has something else to say.
@Suite struct UnseenWritesTests {
  static let tables = ["notes": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))]

  enum Gap: CaseIterable {
    case rebuilt
    case triggersDropped

    func make(_ file: SyncedFile) throws {
      switch self {
      case .rebuilt:
        try file.sql.run(
          "CREATE TABLE fresh(id TEXT PRIMARY KEY, owner_id TEXT, q, s); INSERT INTO fresh SELECT id, owner_id, q, s "
            + "FROM notes; DROP TABLE notes; ALTER TABLE fresh RENAME TO notes")
      case .triggersDropped:
        let triggers = try file.sql.texts(
          "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'notes'")
        try file.sql.run(triggers.map { "DROP TRIGGER \"\($0)\"" }.joined(separator: "; "))
      }
    }
  }

  /// Rows `1` to `4`, of which the server has no `q` of the first.
  private func withFile(_ body: (SyncedFile) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder, Self.tables)
      let sql = try file.sql
      try sql.run("CREATE TABLE notes(id TEXT PRIMARY KEY, owner_id TEXT, q, s)")
      sql.close()
      try await file.sync()
      try file.sql.run(
        "INSERT INTO notes(id, s) VALUES ('1', 'a'); INSERT INTO notes(id, q, s) VALUES ('2', 2, 'b'), ('3', 3, 'c')")
      try await file.sync()
      try await body(file)
    }
  }

  private func agree(_ file: SyncedFile, _ expected: [String]) async throws {
    for _ in 0..<2 { try await file.sync() }
    #expect(try file.rows("notes", "coalesce(q, '') || s") == expected)
    for row in expected {
      let parts = row.split(separator: ":")
      let there = await file.server.row("notes", String(parts[0]))
      let q = there?["q"].map { $0 == .null ? "" : JSONWriter.text($0) } ?? ""
      #expect(q + (there?["s"]?.stringValue ?? "") == parts[1])
    }
    #expect(try file.sql.texts("SELECT 1 FROM _kizunasync_outbox UNION ALL SELECT 1 FROM _kizunasync_rejections") == [])
  }

  @Test(arguments: Gap.allCases) func cellsThatTheServersRowLacks(gap: Gap) async throws {
    try await withFile { file in
      try gap.make(file)
      try file.sql.run("UPDATE notes SET q = 8 WHERE id = '1'; UPDATE notes SET q = 9 WHERE id = '2'")
      try await agree(file, ["1:8a", "2:9b", "3:3c"])
    }
  }

  @Test(arguments: Gap.allCases) func cellsOfRowsWithQueuedWrites(gap: Gap) async throws {
    try await withFile { file in
      try file.sql.run("UPDATE notes SET s = 'mine' WHERE id = '2'; INSERT INTO notes(id, q, s) VALUES ('4', 4, 'd')")
      try gap.make(file)
      try file.sql.run("UPDATE notes SET q = q + 5 WHERE id IN ('2', '3', '4')")
      try await agree(file, ["1:a", "2:7mine", "3:8c", "4:9d"])
    }
  }

  /// What another program queued and what it wrote unseen is one row's history: the later stands.
  @Test(arguments: Gap.allCases) func theSameCellWrittenSeenAndUnseen(gap: Gap) async throws {
    try await withFile { file in
      try file.sql.run("UPDATE notes SET q = 5 WHERE id = '2'")
      try gap.make(file)
      try file.sql.run("UPDATE notes SET q = 6 WHERE id = '2'")
      try await file.serve("3", ["q": 7], in: "notes")
      try await agree(file, ["1:a", "2:6b", "3:7c"])
    }
  }
}
