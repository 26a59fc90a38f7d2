import Glibc
import HostKit

/// An open file that is only appended to.
struct StateFile: Sendable {
  let path: String
  private let descriptor: Int32

  static func create(_ path: String) throws(StateDirectoryError) -> StateFile {
    try open(path, O_TRUNC)
  }

  static func open(_ path: String) throws(StateDirectoryError) -> StateFile {
    try open(path, 0)
  }

  private static func open(_ path: String, _ flags: Int32) throws(StateDirectoryError) -> StateFile {
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0o600)
    guard descriptor >= 0 else { throw .cannot("opened", path: path, reason: lastReason()) }
    return StateFile(path: path, descriptor: descriptor)
  }

  /// Appends all bytes; when the disk takes only some of them, the file is cut back to what it was.
  func append(_ bytes: [UInt8]) throws(StateDirectoryError) {
    let before = lseek(descriptor, 0, SEEK_END)
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress?.advanced(by: written), $0.count - written) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        let reason = lastReason()
        ftruncate(descriptor, before)
        throw .cannot("written", path: path, reason: reason)
      }
      written += count
    }
  }

  func truncate(to length: Int) throws(StateDirectoryError) {
    guard ftruncate(descriptor, off_t(length)) == 0 else { throw .cannot("cut", path: path, reason: lastReason()) }
  }

  /// Waits until the file is on the disk.
  func synchronize() throws(StateDirectoryError) {
    guard fdatasync(descriptor) == 0 else { throw .cannot("synced", path: path, reason: lastReason()) }
  }

  func close() { Glibc.close(descriptor) }
}

func lastReason() -> String { String(cString: strerror(errno)) }
