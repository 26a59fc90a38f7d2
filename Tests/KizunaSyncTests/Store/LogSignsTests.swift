import Glibc
import HostKit
import Testing

@testable import KizunaSync

@Suite struct LogSignsTests {
  /// Counts signs and waits for them. Events come in the order in which they happened.
  private final class Signs: Sendable {
    private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    private let count = Locked(0)

    var total: Int { count.withLock { $0 } }

    func note() {
      count.withLock { $0 += 1 }
      continuation.yield()
    }

    /// Waits for one more than there were before `action`.
    func after(_ action: () throws -> Void) async rethrows {
      let before = total
      try action()
      var iterator = stream.makeAsyncIterator()
      while total <= before { await iterator.next() }
    }
  }

  @Test func aCommitIsASign() async throws {
    try await withScratchFolder { folder in
      let writer = try PlainDatabase.withLog("\(folder)/a.db")
      let signs = Signs()
      let watch = try LogSigns(DatabaseFiles("\(folder)/a.db")) { signs.note() }
      for number in 0..<3 {
        try await signs.after { try writer.run("INSERT INTO t VALUES (\(number))") }
      }
      watch.cancel()
    }
  }

  @Test func aLogThatIsMadeLaterOrAnewIsWatchedToo() async throws {
    try await withScratchFolder { folder in
      let signs = Signs()
      let watch = try LogSigns(DatabaseFiles("\(folder)/a.db")) { signs.note() }
      for _ in 0..<3 {
        let writer = try PlainDatabase("\(folder)/a.db")
        try await signs.after { try writer.run("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t (a)") }
        for number in 0..<3 {
          try await signs.after { try writer.run("INSERT INTO t VALUES (\(number))") }
        }
        // The last connection removes the log, and with it the watch.
        writer.close()
        #expect(access("\(folder)/a.db-wal", F_OK) != 0)
      }
      watch.cancel()
    }
  }

  @Test func aLogThatIsMovedIntoPlaceIsASign() async throws {
    try await withScratchFolder { folder in
      close(creat("\(folder)/other", 0o644))
      let signs = Signs()
      let watch = try LogSigns(DatabaseFiles("\(folder)/a.db")) { signs.note() }
      await signs.after { rename("\(folder)/other", "\(folder)/a.db-wal") }
      #expect(signs.total == 1)
      watch.cancel()
    }
  }

  @Test func otherFilesOfTheFolderAreNone() async throws {
    try await withScratchFolder { folder in
      let signs = Signs()
      let watch = try LogSigns(DatabaseFiles("\(folder)/a.db")) { signs.note() }
      let other = try PlainDatabase.withLog("\(folder)/b.db")
      for number in 0..<100 { try other.run("INSERT INTO t VALUES (\(number))") }
      close(creat("\(folder)/a.db-wal2", 0o644))
      close(creat("\(folder)/a.db", 0o644))
      await signs.after { close(creat("\(folder)/a.db-wal", 0o644)) }
      #expect(signs.total == 1)
      watch.cancel()
    }
  }

  @Test func aLinkIsFollowedAsSQLiteDoes() async throws {
    try await withScratchFolder { folder in
      mkdir("\(folder)/real", 0o755)
      let writer = try PlainDatabase.withLog("\(folder)/real/a.db")
      symlink("real/a.db", "\(folder)/link.db")
      let signs = Signs()
      let watch = try LogSigns(DatabaseFiles("\(folder)/link.db")) { signs.note() }
      try await signs.after { try writer.run("INSERT INTO t VALUES (1)") }
      watch.cancel()
    }
  }
}
