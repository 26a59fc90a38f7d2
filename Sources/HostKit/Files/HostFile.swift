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
  public static func read(_ path: String, maximumBytes: Int = 16 << 20) throws(HostFileError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw HostFileError(path: path, code: errno) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      if count < 0 { throw HostFileError(path: path, code: errno) }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[0..<count])
      if bytes.count > maximumBytes { throw HostFileError(path: path, reason: "longer than \(maximumBytes) bytes") }
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
