import HostKit

/// Notices that a file of an open database was deleted, moved away or replaced. Whoever goes on writing then writes where
/// nobody will ever look.
///
/// The folders are watched, nothing is polled; and `loss` may be asked at any time.
final class DatabaseFileGuard: Sendable {
  enum Part: String, Sendable, CaseIterable {
    case database, writeAheadLog, sharedMemory
  }

  enum Manner: Sendable, Hashable {
    case gone
    /// Another file has its name now.
    case replaced
    /// It is the same file, and what was in it was cut off. It is looked for at each run; a write makes no sign.
    case emptied
  }

  struct Loss: Sendable, Hashable {
    var part: Part
    var manner: Manner
  }

  private let files: DatabaseFiles
  /// The path the client was given; it may be a link.
  private let path: String
  private let identities: [Part: FileIdentity]
  private let watches = Locked<[FileEventWatch]>([])

  /// To be made when the database is open and has been used once: SQLite makes the other files then.
  init(path: String) {
    self.path = path
    files = DatabaseFiles(path)
    var identities: [Part: FileIdentity] = [:]
    for part in Part.allCases { identities[part] = FileIdentity(path: Self.name(of: part, files)) }
    self.identities = identities
  }

  private static func name(of part: Part, _ files: DatabaseFiles) -> String {
    switch part {
    case .database: files.database
    case .writeAheadLog: files.writeAheadLog
    case .sharedMemory: files.sharedMemory
    }
  }

  /// Which file is not the one it was; nil when all are.
  func loss() -> Loss? {
    for part in Part.allCases {
      guard let known = identities[part] else { continue }
      let now = FileIdentity(path: part == .database ? path : Self.name(of: part, files))
      if now != known { return Loss(part: part, manner: now == nil ? .gone : .replaced) }
      // Never the case once a database has been used. Asked before the others: SQLite deletes the log of an empty file.
      if part == .database, FileIdentity.isEmpty(path: path) { return Loss(part: .database, manner: .emptied) }
    }
    return nil
  }

  /// Calls `sign` whenever something happens to the name of one of the files, the lock's among them.
  /// - Parameter sign: called on the thread of `FileEvents`; must be short.
  /// - Throws: `HostFileError` when a folder cannot be watched.
  func watch(_ sign: @escaping @Sendable () -> Void) throws(HostFileError) {
    let names = Set(
      [files.database, files.writeAheadLog, files.sharedMemory, files.lock, path].map(DatabaseFiles.name(of:)))
    let kinds: FileEvents.Kinds = [.removed, .movedOut, .created, .movedIn, .selfRemoved, .selfMoved]
    for folder in Set([files.directory, HostFile.directory(of: path)]) {
      let watch = try FileEvents.shared.watch(folder, for: kinds) { happened, name in
        if names.contains(name) || !happened.isDisjoint(with: [.selfRemoved, .selfMoved, .overflow]) { sign() }
      }
      watches.withLock { $0.append(watch) }
    }
  }

  func cancel() {
    let old = watches.withLock { watches in
      defer { watches = [] }
      return watches
    }
    for watch in old { watch.cancel() }
  }

  /// - Parameter unsent: how many writes of this host the server has not decided.
  func sentence(_ loss: Loss, unsent: Int) -> String {
    let queue =
      switch unsent {
      case 0: ""
      case 1: " (it held one write that was not sent)"
      default: " (it held \(unsent) writes that were not sent)"
      }
    switch (loss.part, loss.manner) {
    case (.database, .gone):
      return "the database \(path) was deleted or moved away while it was in use\(queue); start again, and a new one "
        + "is made and filled from the server"
    case (.database, .emptied):
      return
        "the database \(path) was overwritten while it was in use\(queue); remove it with its -wal and -shm files and start "
        + "again: a new one is made and filled from the server"
    case (.database, .replaced):
      return
        "the database \(path) was replaced by another file while it was in use\(queue); start again to use that one"
    case (let part, _):
      return
        "\(Self.name(of: part, files)), a part of the database while it is in use, was deleted or replaced; what was "
        + "committed is kept; start again"
    }
  }
}
