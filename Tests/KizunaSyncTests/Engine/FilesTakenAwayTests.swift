import Glibc
import HostKit
import Testing

@testable import KizunaSync

/// Somebody deletes, moves or replaces files under a running engine.
@Suite struct FilesTakenAwayTests {
  /// An engine in step with a server that has the row `a`, and what it says when its files are taken.
  private func withEngine(_ body: (SyncedFile, SyncEngine) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.serve("a", ["title": "one"])
      try await file.engine { engine in
        try await engine.sync()
        try await body(file, engine)
      }
    }
  }

  private func loss(_ file: SyncedFile) async -> String {
    for await error in file.losses { return error.message }
    return ""
  }

  @Test func aDeletedDatabaseEndsTheEngineWithASentence() async throws {
    try await withEngine { file, engine in
      try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'new')")
      _ = try await engine.outboxDepth()
      for suffix in ["", "-wal", "-shm"] { unlink(file.path + suffix) }
      let sentence = await loss(file)
      #expect(sentence.contains("\(file.path) was deleted or moved away"))
      #expect(sentence.contains("one write that was not sent"))
      #expect(file.text(of: "store.file_lost", "reason") == sentence)
      let refused = await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      #expect(refused?.message == sentence)
      await #expect(throws: KizunaSyncError.self) {
        try await engine.apply(LocalWrite(table: "todos", pk: "d", op: .insert, columns: ["id": "d"]))
      }
      #expect(access(file.path, F_OK) != 0)
      await engine.dispose()
      // The next start makes a new file and fills it.
      try await file.sync()
      #expect(try file.rows() == ["a:one"])
    }
  }

  /// `: > file` and `cp other file` keep the file and destroy what is in it.
  @Test(arguments: ["", String(repeating: "no database", count: 1000)])
  func aDatabaseThatIsOverwrittenInPlaceEndsTheEngine(bytes: String) async throws {
    try await withEngine { file, engine in
      // What was committed is in the file, and nothing of it in the log.
      let other = try PlainDatabase(file.path)
      try other.run("PRAGMA wal_checkpoint(TRUNCATE)")
      other.close()
      let descriptor = open(file.path, O_WRONLY | O_TRUNC)
      _ = Array(bytes.utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      close(descriptor)
      let refused = await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      #expect(refused?.message.contains("was overwritten while it was in use") == true, "\(refused?.message ?? "")")
      #expect(await loss(file) == refused?.message)
    }
  }

  /// The `sqlite3` program deletes the log of a file without a byte in it, as soon as it looks into it; or the file is
  /// another one's content by then. What was committed is not kept.
  @Test(arguments: [false, true])
  func aDatabaseThatIsCutOffIsLostWithItsLog(isFilled: Bool) async throws {
    try await withEngine { file, engine in
      if isFilled {
        let other = try PlainDatabase(file.path + ".new")
        try other.run("CREATE TABLE other(a)")
        other.close()
        let bytes = try HostFile.read(file.path + ".new", maximumBytes: 1 << 20)
        let descriptor = open(file.path, O_WRONLY | O_TRUNC)
        _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        close(descriptor)
        unlink(file.path + "-wal")
      } else {
        truncate(file.path, 0)
        let other = try PlainDatabase(file.path)
        #expect(other.integer("SELECT count(*) FROM sqlite_schema") == 0)
        other.close()
        #expect(access(file.path + "-wal", F_OK) != 0)
      }
      let sentence = await loss(file)
      #expect(sentence.contains("the database \(file.path) was overwritten while it was in use"), "\(sentence)")
      let refused = await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      #expect(refused?.message == sentence)
    }
  }

  /// SQLite takes a log for that of the file beside it, whichever that is.
  @Test func theLogOfADatabaseThatWasReplacedDoesNotSpoilTheNewOne() async throws {
    try await withEngine { file, engine in
      let other = try PlainDatabase(file.path + ".new")
      try other.run("CREATE TABLE other(a); INSERT INTO other VALUES ('kept')")
      other.close()
      try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'new')")
      rename(file.path + ".new", file.path)
      #expect(await loss(file).contains("was replaced by another file"))
      await engine.dispose()
      let now = try file.sql
      #expect(try now.texts("PRAGMA integrity_check") == ["ok"])
      #expect(try now.texts("SELECT a FROM other") == ["kept"])
      now.close()
    }
  }

  @Test func aDatabaseThatWasMovedTakesEverythingAlong() async throws {
    try await withEngine { file, engine in
      try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'new')")
      rename(file.path, file.path + ".old")
      #expect(await loss(file).contains("deleted or moved away"))
      await engine.dispose()
      unlink(file.path + "-wal")
      unlink(file.path + "-shm")
      let moved = try PlainDatabase(file.path + ".old")
      #expect(try moved.texts("SELECT id FROM todos ORDER BY id") == ["a", "c"])
      moved.close()
    }
  }

  @Test(arguments: ["-wal", "-shm"])
  func whatWasCommittedSurvivesTheLossOfALog(suffix: String) async throws {
    try await withEngine { file, engine in
      try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'new')")
      _ = try await engine.outboxDepth()
      unlink(file.path + suffix)
      #expect(await loss(file).contains("\(file.path)\(suffix)"))
      await engine.dispose()
      #expect(try file.rows() == ["a:one", "c:new"])
      #expect(try file.sql.texts("PRAGMA integrity_check") == ["ok"])
      try await file.sync()
      #expect(await file.server.row("todos", "c")?["title"] == "new")
    }
  }

  @Test func aRunThatIsUnderWayWritesNothingMore() async throws {
    try await withEngine { file, engine in
      try await file.serve("b", ["title": "two"])
      unlink(file.path)
      await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      #expect(await loss(file).contains("was deleted"))
    }
  }

  // MARK: The lock

  @Test func aLockFileThatIsRemovedIsMadeAgain() async throws {
    try await withEngine { file, engine in
      let lock = file.path + "-kizuna.lock"
      unlink(lock)
      // In its own time, or with the next run.
      try await engine.sync()
      #expect(file.events.contains("store.lock_taken_again"))
      #expect(try HostFile.readText(lock) == "\(getpid())\n")
      await #expect(throws: KizunaSyncError.self) { try await file.engine { _ in } }
      try await engine.sync()
    }
  }

  @Test func aLockThatAnotherTookMeanwhileEndsTheEngine() async throws {
    try await withEngine { file, engine in
      let lock = file.path + "-kizuna.lock"
      // A file that is locked already is put in its place.
      let other = open(lock + ".new", O_RDWR | O_CREAT, 0o644)
      #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
      rename(lock + ".new", lock)
      #expect(await loss(file).contains("another process took the lock"))
      let refused = await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
      #expect(refused?.code == "STORE_UNAVAILABLE")
      close(other)
    }
  }
}
