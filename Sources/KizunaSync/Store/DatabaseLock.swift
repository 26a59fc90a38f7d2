import CLinux
import Glibc
import HostKit

/// The right to synchronise one database file: at most one holder among all processes, and at most one client within a
/// process. Plain SQL needs no lock.
///
/// It is a `flock` on `<database>-kizuna.lock`, so it ends with the process however that ends. The file holds the
/// holder's process id as text, for people and for error messages, and stays behind empty.
final class DatabaseLock: Sendable {
  let path: String
  /// The open file that the lock belongs to; -1 after `release`.
  private let descriptor: Locked<Int32>

  private static let attempts = 20
  private static let pause: UInt32 = 2_000

  /// Takes the lock; waits for nobody who holds it.
  /// - Parameter database: the database's path; it need not exist yet, its folder must.
  /// - Throws: `DatabaseLockError`.
  init(database: String) throws(DatabaseLockError) {
    let path = DatabaseFiles(database).lock
    self.path = path
    descriptor = Locked(try Self.take(path))
  }

  /// - Returns: the open file that is locked.
  private static func take(_ path: String) throws(DatabaseLockError) -> Int32 {
    var attempts = 0
    while true {
      // Not inherited by child processes: a lock must not outlive its holder in one of them.
      let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      guard file >= 0 else { throw .unavailable(path: path, errno: errno) }
      if flock(file, LOCK_EX | LOCK_NB) == 0 {
        // Somebody may have removed the file meanwhile: the lock of a file that nobody else can open is none.
        guard FileIdentity(descriptor: file) == FileIdentity(path: path) else {
          close(file)
          continue
        }
        write(processID: getpid(), to: file)
        return file
      }
      let reason = errno
      let processID = readProcessID(file)
      close(file)
      if reason == EINTR { continue }
      attempts += 1
      guard reason == EWOULDBLOCK, attempts < Self.attempts, processID.map(isAlive) != true else {
        throw reason == EWOULDBLOCK
          ? .held(path: path, processID: processID) : .unavailable(path: path, errno: reason)
      }
      // Somebody is just looking (`holder`), or has not written its id yet.
      usleep(pause)
    }
  }

  private static func write(processID: Int32, to file: Int32) {
    let text = Array("\(processID)\n".utf8)
    ftruncate(file, 0)
    // Best effort: a full disk must not keep the holder from its lock, it only makes the error of others less helpful.
    _ = pwrite(file, text, text.count, 0)
  }

  /// Whether the lock is still worth something: its file has its name, or it was given back.
  var isEffective: Bool {
    descriptor.withLock { $0 < 0 || FileIdentity(descriptor: $0) == FileIdentity(path: path) }
  }

  /// Takes the lock anew after its file was removed or replaced.
  /// - Throws: `DatabaseLockError` when another process was quicker.
  func renew() throws(DatabaseLockError) {
    let file = try Self.take(path)
    let old = descriptor.withLock { descriptor -> Int32 in
      defer { descriptor = file }
      return descriptor
    }
    if old >= 0 { close(old) }
  }

  deinit { release() }

  /// Gives the lock back. Idempotent.
  func release() {
    let file = descriptor.withLock { descriptor -> Int32 in
      defer { descriptor = -1 }
      return descriptor
    }
    guard file >= 0 else { return }
    // The file stays: removing it would let a third process lock a new file while a second one locks the old.
    ftruncate(file, 0)
    // Closing alone would not do while a child process is between `fork` and `exec`: it has a copy of the descriptor.
    flock(file, LOCK_UN)
    close(file)
  }

  /// Who holds the lock of a database, without taking it.
  struct Holder: Sendable, Hashable {
    /// Nil when the holder did not write it.
    let processID: Int32?
  }

  /// - Returns: nil when nobody holds the lock of that database.
  static func holder(ofDatabase database: String) -> Holder? {
    let file = open(DatabaseFiles(database).lock, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    // A shared lock is refused only because of a holder; closing gives it back.
    guard flock(file, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return nil }
    return Holder(processID: readProcessID(file))
  }

  /// Returns when nobody holds the lock of that database, however its holder ends. Blocks the thread.
  static func waitForRelease(ofDatabase database: String) {
    let file = open(DatabaseFiles(database).lock, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    while flock(file, LOCK_SH) != 0, errno == EINTR {}
    // Closing gives it back.
    close(file)
  }

  private static func isAlive(_ processID: Int32) -> Bool {
    kill(processID, 0) == 0 || errno == EPERM
  }

  private static func readProcessID(_ file: Int32) -> Int32? {
    var text = [UInt8](repeating: 0, count: 16)
    let count = pread(file, &text, text.count, 0)
    guard count > 0 else { return nil }
    return Int32(String(decoding: text[..<count].prefix { $0 != 0x0A }, as: UTF8.self))
  }
}

/// Why a database could not be locked.
enum DatabaseLockError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Somebody else has it. The process id is nil when the holder has not written it yet.
  case held(path: String, processID: Int32?)
  case unavailable(path: String, errno: Int32)

  /// What every sentence of `held` contains.
  static let heldWords = "synchronises the same database (lock file "

  var description: String {
    switch self {
    case .held(let path, .some(getpid())):
      "another client of this process \(Self.heldWords)\(path))"
    case .held(let path, let processID):
      "process \(processID.map(String.init) ?? "(unknown)") \(Self.heldWords)\(path)); "
        + "stop it first"
    case .unavailable(let path, let errno):
      "the lock file \(path) cannot be used: \(String(cString: strerror(errno))); this user must be able to write it"
    }
  }
}
