import Glibc
import HostKit
import Testing

@testable import KizunaSync

@Suite(.timeLimit(.minutes(5))) struct ForeignCommitWatcherTests {
  /// Counts checks and waits for them.
  private final class Checks: Sendable {
    private let count = Locked(0)
    let stream: AsyncStream<Int>
    private let continuation: AsyncStream<Int>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    var total: Int { count.withLock { $0 } }

    func note() {
      continuation.yield(
        count.withLock { count in
          count += 1
          return count
        })
    }
  }

  @Test func itChecksAtTheStart() async throws {
    try await withScratchFolder { folder in
      let checks = Checks()
      let watcher = try ForeignCommitWatcher(database: "\(folder)/a.db") { checks.note() }
      var seen = checks.stream.makeAsyncIterator()
      #expect(await seen.next() == 1)
      await watcher.stop()
    }
  }

  @Test(arguments: ["NORMAL", "FULL"])
  func everyCommitOfAnotherConnectionIsFoundByACheck(synchronous: String) async throws {
    try await withScratchFolder { folder in
      let writer = try PlainDatabase.withLog("\(folder)/a.db")
      try writer.run("PRAGMA synchronous = \(synchronous)")
      let found = AsyncStream.makeStream(of: Int.self)
      let reader = try Locked(PlainDatabase("\(folder)/a.db"))
      let watcher = try ForeignCommitWatcher(database: "\(folder)/a.db") {
        found.continuation.yield(reader.withLock { $0.integer("SELECT count(*) FROM t") })
      }
      var counts = found.stream.makeAsyncIterator()
      for number in 1...50 {
        try writer.run("INSERT INTO t VALUES (\(number))")
        // Only a check can move this on: nothing else reads.
        while let count = await counts.next(), count < number {}
      }
      await watcher.stop()
      reader.withLock { $0.close() }
    }
  }

  @Test func afterStopNothingIsChecked() async throws {
    try await withScratchFolder { folder in
      let writer = try PlainDatabase.withLog("\(folder)/a.db")
      let checks = Checks()
      let watcher = try ForeignCommitWatcher(database: "\(folder)/a.db") { checks.note() }
      await watcher.stop()
      let before = checks.total
      try writer.run("INSERT INTO t VALUES (1)")
      await watcher.stop()
      #expect(checks.total == before)
    }
  }

  @Test func lettingGoStopsIt() async throws {
    try await withScratchFolder { folder in
      // The closure lives as long as the thread does.
      final class Owner: Sendable {
        let gone: AsyncStream<Void>.Continuation
        init(_ gone: AsyncStream<Void>.Continuation) { self.gone = gone }
        func check() {}
        deinit { gone.finish() }
      }
      let gone = AsyncStream.makeStream(of: Void.self)
      do {
        let owner = Owner(gone.continuation)
        _ = try ForeignCommitWatcher(database: "\(folder)/a.db") { owner.check() }
      }
      for await _ in gone.stream {}
    }
  }

  @Test func aFolderThatIsMissingIsReported() throws {
    #expect(throws: HostFileError(path: "/nowhere", code: ENOENT)) {
      try ForeignCommitWatcher(database: "/nowhere/a.db") {}
    }
  }
}
