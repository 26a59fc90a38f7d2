import Glibc
import HostKit

/// The file `<database>-kizuna.run`, which holds one `RunRecord`.
///
/// It is not a table of the database, because what it has to tell is also that the database is locked or the disk full:
/// its one page is reserved when it is made and rewritten in place. Only the holder of the database's lock writes it.
/// Everything here blocks on the file system.
package final class RunRecordFile: Sendable {
  private struct State {
    var descriptor: Int32
    var record: RunRecord
  }

  private let path: String
  private let state: Locked<State>

  /// Opens the file for this process, which holds the database's lock, and takes over what the last one left.
  /// - Throws: `HostFileError`.
  package init(database: String, manner: RunRecord.Manner) throws(HostFileError) {
    path = DatabaseFiles(database).runs
    let last = Self.read(ofDatabase: database)
    let record = RunRecord(
      processID: getpid(), manner: manner, number: last?.number ?? 0, failure: last?.failure,
      succeededAt: last?.succeededAt)
    state = Locked(State(descriptor: try Self.make(path), record: record))
    try change { _ in }
  }

  deinit {
    close(state.withLock { $0.descriptor })
  }

  private static func make(_ path: String) throws(HostFileError) -> Int32 {
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard file >= 0 else { throw HostFileError(path: path, code: errno) }
    // Not every file system can reserve space; then a full disk may cost the newest record.
    _ = posix_fallocate(file, 0, off_t(RunRecord.size))
    return file
  }

  /// A run ended.
  /// - Parameters:
  ///   - startedAt: when it began, `CLOCK_MONOTONIC`.
  ///   - succeededAt: when it ended with everything in step, milliseconds since 1970; nil for any other end.
  package func note(
    startedAt: UInt64, failure: RunRecord.Failure?, succeededAt: Int64? = nil
  ) throws(HostFileError) {
    try change { record in
      record.number += 1
      record.startedAt = startedAt
      record.failure = failure
      if let succeededAt { record.succeededAt = succeededAt }
    }
  }

  /// The doorbell stands otherwise than before.
  package func note(_ doorbell: RunRecord.Doorbell) throws(HostFileError) {
    try change { $0.doorbell = doorbell }
  }

  private func change(_ body: (inout RunRecord) -> Void) throws(HostFileError) {
    try state.withLock { state -> Result<Void, HostFileError> in
      body(&state.record)
      return Result { () throws(HostFileError) in try write(&state) }
    }.get()
  }

  private func write(_ state: inout State) throws(HostFileError) {
    var facts = stat()
    if fstat(state.descriptor, &facts) == 0, facts.st_nlink == 0 {
      // Somebody tidied it away; what is written into it now nobody would ever read.
      let file = try Self.make(path)
      close(state.descriptor)
      state.descriptor = file
    }
    let bytes = state.record.bytes
    let count = pwrite(state.descriptor, bytes, bytes.count, 0)
    guard count == bytes.count else { throw HostFileError(path: path, code: count < 0 ? errno : ENOSPC) }
  }

  // MARK: For others

  /// Where the record of a database is.
  package static func path(ofDatabase database: String) -> String { DatabaseFiles(database).runs }

  package static func isThere(ofDatabase database: String) -> Bool { access(path(ofDatabase: database), F_OK) == 0 }

  private static let attempts = 50
  /// Microseconds; a record is rewritten in far less.
  private static let pause: UInt32 = 500

  /// The record of a database, nil when there is none. Takes no lock.
  package static func read(ofDatabase database: String) -> RunRecord? {
    let path = DatabaseFiles(database).runs
    for _ in 0..<attempts {
      guard let bytes = try? HostFile.read(path, maximumBytes: RunRecord.size) else { return nil }
      if let record = RunRecord(bytes) { return record }
      // Being rewritten; or another program's file, which nothing is lost by reading a few times.
      usleep(pause)
    }
    return nil
  }

  /// Calls `changed` after each new record, also the first one, until the watch is let go.
  /// - Throws: `HostFileError` when the folder cannot be watched.
  package static func watch(
    database: String, changed: @escaping @Sendable () -> Void
  ) throws(HostFileError) -> FileEventWatch {
    let files = DatabaseFiles(database)
    let name = DatabaseFiles.name(of: files.runs)
    return try FileEvents.shared.watch(files.directory, for: [.modified, .created]) { kinds, file in
      if file == name || kinds.contains(.overflow) { changed() }
    }
  }
}
