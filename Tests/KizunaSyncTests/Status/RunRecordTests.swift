import Glibc
import HostKit
import Testing

@testable import KizunaSync

@Suite struct RunRecordTests {
  private static let failure = RunRecord.Failure(
    kind: "unreachable", code: "REMOTE", message: "“x” cannot be reached", at: 1_700_000_000_123)

  @Test(arguments: [
    RunRecord(processID: 7),
    RunRecord(processID: 7, manner: .wokenByHangup, number: 3, startedAt: 99),
    RunRecord(processID: .max, number: .max, startedAt: UInt64(Int64.max), failure: failure, succeededAt: 1),
    RunRecord(processID: 7, doorbell: .init(state: "ready", since: 1_700_000_000_123)),
    RunRecord(processID: 7, failure: failure, doorbell: .init(state: "denied", reason: "Unauthorized", since: 5)),
  ])
  func isReadAsItWasWritten(record: RunRecord) {
    #expect(RunRecord(record.bytes) == record)
    #expect(record.bytes.count == RunRecord.size)
  }

  /// The file beside a database may be of another one, which was put back or moved away.
  @Test func aSuccessIsThatOfTheDatabasesNote() {
    let record = RunRecord(processID: 7, succeededAt: 1_000_000)
    for (noted, expected) in [(nil, nil), (1_000_000, 1_000_000), (940_001, 1_000_000), (1_000_001, nil), (1, nil)]
      as [(
        Int64?, Int64?
      )]
    { #expect(record.success(notedAs: noted) == expected) }
    #expect(RunRecord(processID: 7).success(notedAs: 1) == nil)
  }

  @Test func aLongSentenceIsCutAndTheSizeKept() throws {
    for unit in ["a", "ä", "\u{1}", "\"", "👩‍👩‍👧"] {
      var record = RunRecord(processID: 7, failure: Self.failure)
      record.failure?.message = String(repeating: unit, count: 5_000)
      #expect(record.bytes.count == RunRecord.size)
      let message = try #require(RunRecord(record.bytes)?.failure?.message)
      #expect(message.hasPrefix(unit + unit) && message.hasSuffix("…"))
      record.doorbell = RunRecord.Doorbell(state: "denied", reason: record.failure?.message, since: 1)
      #expect(record.bytes.count == RunRecord.size && RunRecord(record.bytes)?.doorbell?.state == "denied")
    }
  }

  /// Readers take no lock, so they may see the front of one record and the back of another.
  @Test func halfOfOneAndHalfOfAnotherIsNone() {
    let old = RunRecord(processID: 7, number: 1, startedAt: 1_000).bytes
    let new = RunRecord(processID: 7, number: 2, startedAt: 2_000, failure: Self.failure).bytes
    for cut in stride(from: 1, to: RunRecord.size, by: 7) {
      let torn = Array(new[..<cut] + old[cut...])
      if torn != old, torn != new { #expect(RunRecord(torn) == nil, "cut at \(cut)") }
    }
    for other in ["", " ", "{}", "0 {}", "no record"] { #expect(RunRecord(Array(other.utf8)) == nil) }
  }

  @Test func theNextProcessTakesOverNumberAndFailure() throws {
    try withScratchFolder { folder in
      let database = folder + "/a.db"
      #expect(RunRecordFile.read(ofDatabase: database) == nil)
      let first = try RunRecordFile(database: database, manner: .wokenByHangup)
      #expect(RunRecordFile.read(ofDatabase: database) == RunRecord(processID: getpid(), manner: .wokenByHangup))
      try first.note(startedAt: 5, failure: nil)
      try first.note(startedAt: 6, failure: Self.failure)
      // A new one knows how the last run ended, and has not finished any itself.
      let second = try RunRecordFile(database: database, manner: .brief)
      #expect(
        RunRecordFile.read(ofDatabase: database)
          == RunRecord(processID: getpid(), manner: .brief, number: 2, startedAt: 0, failure: Self.failure))
      try second.note(startedAt: 9, failure: nil, succeededAt: 77)
      // Only a success is one: what fails afterwards, or does nothing, leaves its time.
      try second.note(startedAt: 10, failure: Self.failure)
      try second.note(startedAt: 11, failure: nil)
      #expect(RunRecordFile.read(ofDatabase: database)?.succeededAt == 77)
      #expect(RunRecordFile.read(ofDatabase: database)?.failure == nil)
      #expect(RunRecordFile.read(ofDatabase: database)?.number == 5)
    }
  }

  @Test func aFileThatWasRemovedIsMadeAgain() throws {
    try withScratchFolder { folder in
      let database = folder + "/a.db"
      let file = try RunRecordFile(database: database, manner: .wokenByHangup)
      try file.note(startedAt: 5, failure: Self.failure)
      #expect(unlink(RunRecordFile.path(ofDatabase: database)) == 0)
      try file.note(RunRecord.Doorbell(state: "ready", since: 7))
      let record = try #require(RunRecordFile.read(ofDatabase: database))
      #expect(record.failure == Self.failure && record.doorbell?.state == "ready" && record.number == 1)
    }
  }

  @Test func everyRecordIsTold() async throws {
    try await withScratchFolder { folder in
      let database = folder + "/a.db"
      let (signs, continuation) = AsyncStream.makeStream(of: Void.self)
      let watch = try RunRecordFile.watch(database: database) { continuation.yield() }
      var iterator = signs.makeAsyncIterator()
      let file = try RunRecordFile(database: database, manner: .wokenByHangup)
      await iterator.next()
      try file.note(startedAt: 7, failure: nil)
      while RunRecordFile.read(ofDatabase: database)?.startedAt != 7 { await iterator.next() }
      watch.cancel()
    }
  }

  @Test func tellsWhenNobodyHoldsTheDatabaseAnyMore() async throws {
    try await withScratchFolder { folder in
      let database = folder + "/a.db"
      let lock = try DatabaseLock(database: database)
      let isReleased = Locked(false)
      await withCheckedContinuation { continuation in
        KizunaSyncReplicaStatus.whenReleased(database: database) {
          #expect(isReleased.withLock { $0 })
          continuation.resume()
        }
        isReleased.withLock { $0 = true }
        lock.release()
      }
      await withCheckedContinuation { continuation in
        KizunaSyncReplicaStatus.whenReleased(database: folder + "/other.db") { continuation.resume() }
      }
    }
  }
}
