import Glibc
import HostKit
import Testing

@testable import KizunaSync

@Suite struct DatabaseFileGuardTests {
  private static let parts: [(DatabaseFileGuard.Part, String)] = [
    (.database, ""), (.writeAheadLog, "-wal"), (.sharedMemory, "-shm"),
  ]

  enum Deed: CaseIterable {
    case delete, moveAway, replace
  }

  private func take(_ file: String, _ deed: Deed) {
    switch deed {
    case .delete: unlink(file)
    case .moveAway: rename(file, file + ".old")
    case .replace:
      close(creat(file + ".new", 0o644))
      rename(file + ".new", file)
    }
  }

  @Test(arguments: parts, Deed.allCases)
  func whateverIsTakenIsNamed(part: (DatabaseFileGuard.Part, String), deed: Deed) async throws {
    try await withScratchFolder { folder in
      let path = folder + "/a.db"
      let database = try PlainDatabase.withLog(path)
      defer { database.close() }
      let files = DatabaseFileGuard(path: path)
      let (signs, continuation) = AsyncStream.makeStream(of: Void.self)
      try files.watch { continuation.yield() }
      try database.run("INSERT INTO t VALUES (1)")
      #expect(files.loss() == nil)
      take(path + part.1, deed)
      for await _ in signs { if files.loss() != nil { break } }
      #expect(files.loss() == .init(part: part.0, manner: deed == .replace ? .replaced : .gone))
      #expect(
        files.sentence(.init(part: part.0, manner: deed == .replace ? .replaced : .gone), unsent: 0).contains(
          path + part.1))
      files.cancel()
    }
  }

  @Test func theFolderMayGoToo() async throws {
    try await withScratchFolder { folder in
      mkdir(folder + "/data", 0o755)
      let database = try PlainDatabase.withLog(folder + "/data/a.db")
      defer { database.close() }
      let files = DatabaseFileGuard(path: folder + "/data/a.db")
      let (signs, continuation) = AsyncStream.makeStream(of: Void.self)
      try files.watch { continuation.yield() }
      rename(folder + "/data", folder + "/elsewhere")
      for await _ in signs { if files.loss() != nil { break } }
      #expect(files.loss() == .init(part: .database, manner: .gone))
      files.cancel()
    }
  }

  @Test func aLinkThatIsTurnedIsAReplacement() async throws {
    try await withScratchFolder { folder in
      mkdir(folder + "/data", 0o755)
      let first = try PlainDatabase.withLog(folder + "/data/a.db")
      let second = try PlainDatabase.withLog(folder + "/data/b.db")
      defer {
        first.close()
        second.close()
      }
      symlink("data/a.db", folder + "/link.db")
      let files = DatabaseFileGuard(path: folder + "/link.db")
      let (signs, continuation) = AsyncStream.makeStream(of: Void.self)
      try files.watch { continuation.yield() }
      #expect(files.loss() == nil)
      symlink("data/b.db", folder + "/new.db")
      rename(folder + "/new.db", folder + "/link.db")
      for await _ in signs { if files.loss() != nil { break } }
      #expect(files.loss() == .init(part: .database, manner: .replaced))
      files.cancel()
    }
  }

  @Test func checkpointsAndOtherFilesAreNoLoss() throws {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      let database = try PlainDatabase.withLog(path)
      defer { database.close() }
      let files = DatabaseFileGuard(path: path)
      for _ in 0..<3 {
        let other = try PlainDatabase(path)
        try other.run("INSERT INTO t VALUES (1); PRAGMA wal_checkpoint(TRUNCATE); VACUUM")
        other.close()
        #expect(files.loss() == nil)
      }
      unlink(folder + "/a.db-journal")
      close(creat(folder + "/a.db.bak", 0o644))
      #expect(files.loss() == nil)
    }
  }

  @Test func theSentenceTellsWhatIsLost() {
    let files = DatabaseFileGuard(path: "/nowhere/a.db")
    let one = files.sentence(.init(part: .database, manner: .gone), unsent: 1)
    #expect(one.contains("/nowhere/a.db was deleted or moved away") && one.contains("one write that was not sent"))
    #expect(
      files.sentence(.init(part: .database, manner: .replaced), unsent: 3).contains("3 writes that were not sent"))
  }
}
