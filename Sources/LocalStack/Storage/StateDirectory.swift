import CLinux
import Glibc
import HostKit

/// A directory that keeps a state as a snapshot and a journal of what happened since, one JSON line per transaction.
///
/// A line is handed to the system before the transaction is acknowledged, so it survives the death of this process at
/// any instant; it is forced to the disk a moment later, so a loss of power can cost the last 200 ms. The snapshot is
/// replaced by writing a new one beside it and renaming it; its first line names the journal that follows it.
final class StateDirectory: Sendable {
  private struct State {
    var generation: Int
    var journal: StateFile
    var journalBytes: Int
    var syncIsDue = false
    var isClosed = false
    /// Called once when the journal has become long.
    var whenLong: (@Sendable () -> Void)?
  }

  /// The journal is worth folding into a snapshot when it is longer than this.
  private static let longJournalBytes = 64 << 20

  private static let format: JSONValue = "kizuna-localstack 1"
  private let path: String
  private let lock: Int32
  private let clock: any HostClock
  private let thread: SerialThread
  private let state: Locked<State>

  /// Opens or creates the directory and plays back what it holds.
  ///
  /// - Parameters:
  ///   - thread: the thread that forces lines to the disk.
  ///   - line: called for every line of the snapshot and the journal; false when it means nothing.
  init(
    _ path: String, clock: any HostClock, thread: SerialThread, log: HostLog = .none, line: (JSONValue) -> Bool
  ) throws(StateDirectoryError) {
    self.path = path
    self.clock = clock
    self.thread = thread
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw .cannot("created", path: path, reason: lastReason()) }
    lock = try Self.lock(path)
    do throws(StateDirectoryError) {
      let generation = try Self.readSnapshot(Self.snapshotPath(path), line, log)
      let journalPath = Self.journalPath(path, generation)
      let journal = try StateFile.open(journalPath)
      let length = try Self.readLines(journalPath, log: log, line)
      // The process that wrote it may have died in the middle of a line, which nobody was told about.
      try journal.truncate(to: length)
      state = Locked(State(generation: generation, journal: journal, journalBytes: length))
    } catch {
      Glibc.close(lock)
      throw error
    }
  }

  deinit { close() }

  private static func snapshotPath(_ path: String) -> String { path + "/state.jsonl" }
  private static func journalPath(_ path: String, _ generation: Int) -> String { "\(path)/journal-\(generation).jsonl" }

  private static func lock(_ path: String) throws(StateDirectoryError) -> Int32 {
    let file = path + "/lock"
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .cannot("opened", path: file, reason: lastReason()) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      Glibc.close(descriptor)
      let holder = (try? HostFile.readText(file))?.filter(\.isNumber) ?? ""
      throw .inUse(path, processID: holder.isEmpty ? "unknown" : holder)
    }
    ftruncate(descriptor, 0)
    let text = Array("\(getpid())\n".utf8)
    _ = write(descriptor, text, text.count)
    return descriptor
  }

  // MARK: Reading

  /// - Returns: the generation of the journal that follows.
  private static func readSnapshot(
    _ path: String, _ line: (JSONValue) -> Bool, _ log: HostLog
  ) throws(StateDirectoryError) -> Int {
    guard access(path, F_OK) == 0 else { return 0 }
    var generation: Int?
    try readLines(path, log: log) { value in
      if generation == nil {
        guard value["format"] == format else { return false }
        generation = value["journal"]?.intValue
        return generation != nil
      }
      return line(value)
    }
    guard let generation else { throw .unreadable(path: path, line: 1) }
    return generation
  }

  /// - Returns: the length of all complete lines in bytes.
  @discardableResult
  private static func readLines(
    _ path: String, log: HostLog, _ line: (JSONValue) -> Bool
  ) throws(StateDirectoryError) -> Int {
    let bytes: [UInt8]
    do throws(HostFileError) {
      bytes = try HostFile.read(path, maximumBytes: .max)
    } catch {
      throw .cannot("read", path: path, reason: error.reason)
    }
    var (start, number) = (0, 0)
    while let end = bytes[start...].firstIndex(of: 0x0A) {
      number += 1
      guard let value = try? JSONValue(parsing: bytes[start..<end]), line(value) else {
        throw .unreadable(path: path, line: number)
      }
      start = end + 1
    }
    if start < bytes.count {
      log.warning(
        "stack.line_cut_off",
        [
          "file": .string(path), "line": .int(number + 1), "bytes": .int(bytes.count - start),
          "reason": "its end is missing, so it is left out: the process died while it was written, or the file was cut",
        ])
    }
    return start
  }

  // MARK: Writing

  /// Appends one transaction to the journal.
  func append(_ line: JSONValue) throws(StateDirectoryError) {
    let bytes = JSONWriter.data(line) + [0x0A]
    let result = state.withLock {
      state -> Result<(mustSync: Bool, whenLong: (@Sendable () -> Void)?), StateDirectoryError> in
      // The descriptor may be somebody else's by now.
      if state.isClosed { return .failure(.cannot("written", path: path, reason: "it is closed")) }
      do throws(StateDirectoryError) {
        try state.journal.append(bytes)
      } catch {
        return .failure(error)
      }
      state.journalBytes += bytes.count
      let mustSync = !state.syncIsDue
      state.syncIsDue = true
      guard state.journalBytes > Self.longJournalBytes else { return .success((mustSync, nil)) }
      defer { state.whenLong = nil }
      return .success((mustSync, state.whenLong))
    }
    let (mustSync, whenLong) = try result.get()
    whenLong?()
    guard mustSync else { return }
    clock.schedule(after: .milliseconds(200)) { [weak self] in
      guard let self else { return }
      thread.run { self.synchronize() }
    }
  }

  /// Calls `body` once when the journal has grown long.
  func whenLong(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.whenLong = body }
  }

  private func synchronize() {
    state.withLock { state in
      state.syncIsDue = false
      // A disk that fails here fails the next append too, and that one is reported.
      if !state.isClosed { try? state.journal.synchronize() }
    }
  }

  /// Replaces the snapshot and starts an empty journal.
  ///
  /// - Parameter lines: calls its argument for every line that makes up the state.
  func replaceSnapshot(
    _ lines: ((JSONValue) throws(StateDirectoryError) -> Void) throws(StateDirectoryError) -> Void
  ) throws(StateDirectoryError) {
    let generation = state.withLock { $0.generation } + 1
    let draft = Self.snapshotPath(path) + ".new"
    let file = try StateFile.create(draft)
    defer { file.close() }
    var writer = JSONWriter()
    writer.write(["format": Self.format, "journal": .int(generation)])
    writer.raw("\n")
    try lines { line throws(StateDirectoryError) in
      writer.write(line)
      writer.raw("\n")
      if writer.bytes.count > 1 << 20 {
        try file.append(writer.bytes)
        writer = JSONWriter()
      }
    }
    try file.append(writer.bytes)
    try file.synchronize()
    let journal = try StateFile.create(Self.journalPath(path, generation))
    try journal.synchronize()
    guard rename(draft, Self.snapshotPath(path)) == 0 else {
      journal.close()
      throw .cannot("replaced", path: Self.snapshotPath(path), reason: lastReason())
    }
    synchronizeDirectory()
    state.withLock { state in
      state.journal.close()
      unlink(Self.journalPath(path, state.generation))
      (state.generation, state.journal, state.journalBytes) = (generation, journal, 0)
    }
  }

  private func synchronizeDirectory() {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    Glibc.close(descriptor)
  }

  /// Forces everything to the disk, closes the files and lets another server have the directory. Appending is an error
  /// from then on.
  func close() {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      try? state.journal.synchronize()
      state.journal.close()
      Glibc.close(lock)
    }
  }

  // MARK: Secrets

  /// The text of a small file that only its owner can read; written with `make` when there is none.
  func secret(_ name: String, make: () -> String) throws(StateDirectoryError) -> String {
    let file = path + "/" + name
    if access(file, F_OK) == 0 {
      do throws(HostFileError) {
        let text = String(try HostFile.readText(file).filter { !$0.isWhitespace })
        // Left by a process that died, or a disk that was full, while it was made; nothing was ever signed with it.
        if !text.isEmpty { return text }
      } catch {
        throw .cannot("read", path: file, reason: error.reason)
      }
    }
    let text = make()
    let created = try StateFile.create(file)
    defer { created.close() }
    try created.append(Array((text + "\n").utf8))
    try created.synchronize()
    return text
  }
}
