import Glibc

/// What the system said about a file, with its path and a readable reason.
public struct HostFileError: Error, Sendable, Hashable, CustomStringConvertible {
  public let path: String
  /// The `errno`, 0 when the reason is none of the system's.
  public let code: Int32
  public let reason: String

  public init(path: String, code: Int32) {
    self.path = path
    self.code = code
    reason = String(cString: strerror(code))
  }

  public init(path: String, reason: String) {
    self.path = path
    code = 0
    self.reason = reason
  }

  public var description: String { "\(path): \(reason)" }

  public var isMissing: Bool { code == ENOENT }
}

/// Small files, read whole.
public enum HostFile {
  /// - Parameter maximumBytes: a longer file is refused, so that a wrong path cannot exhaust the memory.
  /// - Throws: `HostFileError`, also for anything but a regular file: a pipe or a device may have no end, and opening one
  ///   may wait for ever.
  public static func read(_ path: String, maximumBytes: Int = 16 << 20) throws(HostFileError) -> [UInt8] {
    // Before it is opened: for some devices that is an act.
    try checkKind(path)
    // Something else may be there by now; then this does not wait, and the check of what was opened finds it.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw HostFileError(path: path, code: errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw HostFileError(path: path, code: errno) }
    if let wrong = problem(of: status) { throw HostFileError(path: path, reason: wrong) }
    if status.st_size > maximumBytes { throw tooLong(path, maximumBytes) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      if count < 0 { throw HostFileError(path: path, code: errno) }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[0..<count])
      // Also where the system does not know the size, as below /proc.
      if bytes.count > maximumBytes { throw tooLong(path, maximumBytes) }
    }
  }

  private static func tooLong(_ path: String, _ maximum: Int) -> HostFileError {
    HostFileError(path: path, reason: "longer than \(maximum) bytes")
  }

  /// Checks that a regular file is at `path`, links followed, without opening it: for what a library is to read.
  /// - Throws: `HostFileError` when there is none, or something else.
  public static func checkKind(_ path: String) throws(HostFileError) {
    // C ends the path there, and would take another file.
    if path.utf8.contains(0) { throw HostFileError(path: path.filter { $0 != "\0" }, reason: "a path holds no NUL") }
    var status = stat()
    guard stat(path, &status) == 0 else { throw HostFileError(path: path, code: errno) }
    if let wrong = problem(of: status) { throw HostFileError(path: path, reason: wrong) }
  }

  private static func problem(of status: stat) -> String? {
    switch status.st_mode & S_IFMT {
    case S_IFREG: nil
    case S_IFDIR: "it is a folder, not a file"
    case S_IFIFO: "it is a pipe, not a file"
    case S_IFSOCK: "it is a socket, not a file"
    case S_IFCHR, S_IFBLK: "it is a device, not a file"
    default: "it is not a regular file"
    }
  }

  /// - Throws: `HostFileError` also when the bytes are not UTF-8.
  public static func readText(_ path: String, maximumBytes: Int = 16 << 20) throws(HostFileError) -> String {
    let bytes = try read(path, maximumBytes: maximumBytes)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw HostFileError(path: path, reason: "not UTF-8 text")
    }
    return text
  }

  /// True when every user of the host may read the file; false also when there is none.
  public static func isWorldReadable(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    return status.st_mode & S_IROTH != 0
  }

  /// The folder part of a path, `.` when it has none.
  public static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// `path` itself when absolute, else under `directory`.
  public static func resolve(_ path: String, in directory: String) -> String {
    path.hasPrefix("/") || directory == "." ? path : directory + "/" + path
  }
}
