import HostKit

/// Signs that a database's write-ahead log changed, was made, or was put in place.
///
/// The folder is watched too, because the log may not exist yet, and goes with the last connection.
final class LogSigns: Sendable {
  private let files: DatabaseFiles
  private let sign: @Sendable () -> Void
  private let folder = Locked<FileEventWatch?>(nil)
  private let log = Locked<FileEventWatch?>(nil)

  /// - Parameter sign: called on the thread of `FileEvents`; must be short.
  /// - Throws: `HostFileError` when the folder cannot be watched.
  init(_ files: DatabaseFiles, sign: @escaping @Sendable () -> Void) throws(HostFileError) {
    self.files = files
    self.sign = sign
    let logName = DatabaseFiles.name(of: files.writeAheadLog)
    let watch = try FileEvents.shared.watch(files.directory, for: [.created, .movedIn]) { [weak self] kinds, name in
      guard let self, name == logName || kinds.contains(.overflow) else { return }
      watchLog()
      self.sign()
    }
    folder.withLock { $0 = watch }
    watchLog()
  }

  /// A log that is missing is watched once the folder tells of it.
  private func watchLog() {
    let sign = sign
    let watch = try? FileEvents.shared.watch(files.writeAheadLog, for: .modified) { _, _ in sign() }
    guard let watch else { return }
    // The old watch goes after the new one is there: both may be for the same file.
    let old = log.withLock { log in
      defer { log = watch }
      return log
    }
    old?.cancel()
  }

  func cancel() {
    folder.withLock { $0 }?.cancel()
    log.withLock { $0 }?.cancel()
  }
}
