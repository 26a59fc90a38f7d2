import Foundation
import HostKit
import Testing

@testable import KizunaSync

@Suite struct DatabaseExaminationTests {
  private func synced(_ body: (SyncedFile) throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      for number in 0..<200 {
        try await file.serve("\(number)", ["title": .string(String(repeating: "x", count: 200))])
      }
      try await file.sync()
      try body(file)
    }
  }

  @Test func aSoundReplica() async throws {
    try await synced { file in
      let before = try FileManager.default.contentsOfDirectory(atPath: HostFile.directory(of: file.path)).sorted()
      let found = DatabaseExamination.examine(databasePath: file.path)
      #expect(found.accessProblem == nil && found.openingProblem == nil && found.holder == nil)
      #expect(found.damage.isEmpty && found.orphans.isEmpty)
      #expect(found.journalMode == "wal")
      #expect(found.format == .version(DatabaseExamination.knownFormat))
      #expect(found.owner == owner && found.cursor == found.status?.cursor && found.cursor != nil)
      #expect(found.status?.rows["todos"] == 200)
      #expect(found.freeBytes ?? 0 > 0)
      guard case .present(let bytes) = found.file else {
        Issue.record("the file is there")
        return
      }
      #expect(bytes > 40_000)
      let after = try FileManager.default.contentsOfDirectory(atPath: HostFile.directory(of: file.path)).sorted()
      #expect(after == before)
    }
  }

  @Test func besideAClient() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.engine { engine in
        // What is in the log only is looked at as well.
        try file.sql.run("INSERT INTO todos(id, title) VALUES ('a', 'x')")
        let found = DatabaseExamination.examine(databasePath: file.path)
        #expect(found.holder?.processID == getpid())
        #expect(found.status?.rows["todos"] == 1 && found.damage.isEmpty)
        try await engine.sync()
      }
      #expect(await file.server.row("todos", "a") != nil)
    }
  }

  @Test func nothingThere() throws {
    try withScratchFolder { folder in
      let found = DatabaseExamination.examine(databasePath: folder + "/a.db")
      #expect(found.file == .missing && found.accessProblem == nil && found.openingProblem == nil)
      let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      #expect(names.isEmpty)
      let nowhere = DatabaseExamination.examine(databasePath: folder + "/none/a.db")
      #expect(nowhere.accessProblem?.contains("does not exist") == true && nowhere.freeBytes == nil)
    }
  }

  @Test func whatIsNoDatabase() throws {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      try Data(String(repeating: "no database ", count: 1000).utf8).write(to: URL(fileURLWithPath: path))
      #expect(
        DatabaseExamination.examine(databasePath: path).openingProblem?.contains("not an SQLite database") == true)
      #expect(DatabaseExamination.examine(databasePath: folder).openingProblem?.contains("is a directory") == true)
    }
  }

  /// Overwrites the middle of the file, with the log copied into it first.
  private func damage(_ path: String) throws {
    let sql = try PlainDatabase(path)
    // The middle of the file is the middle of this table.
    try sql.run(
      "CREATE TABLE big(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
        + "INSERT INTO big SELECT randomblob(1000) FROM n; PRAGMA wal_checkpoint(TRUNCATE)")
    sql.close()
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    let size = try handle.seekToEnd()
    try handle.seek(toOffset: size / 2)
    try handle.write(contentsOf: Data(repeating: 0xA5, count: Int(size / 4)))
    try handle.close()
  }

  @Test func damageInTheMiddle() async throws {
    try await synced { file in
      try damage(file.path)
      let found = DatabaseExamination.examine(databasePath: file.path)
      #expect(found.openingProblem == nil)
      #expect(!found.damage.isEmpty)
      #expect(found.damage.count <= 20 && !found.damage.contains { $0.contains("xxx") })
      #expect(found.format == nil)
    }
  }

  @Test func whatOthersDidToIt() async throws {
    try await synced { file in
      let sql = try file.sql
      try sql.run(
        """
        CREATE TABLE list(id INTEGER PRIMARY KEY);
        CREATE TABLE item(id, list REFERENCES list(id)); INSERT INTO item VALUES (1, 7), (2, 8), (3, NULL);
        UPDATE _kizunasync_meta SET value = 99 WHERE key = 'version';
        """)
      let newer = DatabaseExamination.examine(databasePath: file.path)
      #expect(newer.format == .version(99))
      #expect(newer.orphans == [.init(table: "item", parent: "list", count: 2)])
      try sql.run("DROP TABLE _kizunasync_meta; DROP TABLE _kizunasync_outbox; PRAGMA journal_mode = DELETE")
      let dropped = DatabaseExamination.examine(databasePath: file.path)
      #expect(dropped.format == .incomplete(["_kizunasync_meta", "_kizunasync_outbox"]))
      #expect(dropped.journalMode == "delete" && dropped.status == nil && dropped.owner == nil)
      #expect(dropped.damage.isEmpty)
    }
  }

  @Test func aDatabaseNobodySynced() throws {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      try PlainDatabase(path).run("CREATE TABLE t(a)")
      let found = DatabaseExamination.examine(databasePath: path)
      #expect(found.format == .untouched && found.damage.isEmpty && found.status == nil)
    }
  }
}
