import Glibc

/// Small files that must survive a power cut whole: either the old content or the new.
public enum DurableFile {
  /// Replaces the file at `path`. When this returns, the new content is on the disk under that name. Blocks on the disk.
  /// - Parameter mode: permissions of the new file, whatever those of the old one or the process's mask.
  /// - Throws: `HostFileError`; the old file is untouched then.
  public static func replace(_ path: String, with bytes: [UInt8], mode: mode_t = 0o600) throws(HostFileError) {
    let temporary = "\(path).new-\(getpid())"
    // What a dead process of the same id left behind.
    unlink(temporary)
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
    guard file >= 0 else { throw HostFileError(path: path, code: errno) }
    var failure = fchmod(file, mode) == 0 ? writeAll(bytes, to: file) : errno
    if failure == 0, fsync(file) != 0 { failure = errno }
    if close(file) != 0, failure == 0 { failure = errno }
    if failure == 0, rename(temporary, path) != 0 { failure = errno }
    guard failure == 0 else {
      unlink(temporary)
      throw HostFileError(path: path, code: failure)
    }
    // The name is part of the folder's content.
    let folder = open(HostFile.directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw HostFileError(path: path, code: errno) }
    defer { close(folder) }
    if fsync(folder) != 0 { throw HostFileError(path: path, code: errno) }
  }

  /// The `errno`, or 0.
  private static func writeAll(_ bytes: [UInt8], to file: Int32) -> Int32 {
    var written = 0
    while written < bytes.count {
      let count = bytes[written...].withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { return errno }
      written += max(count, 0)
    }
    return 0
  }
}
