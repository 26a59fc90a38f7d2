import Glibc

/// What tells one file from another that bears its name later.
struct FileIdentity: Sendable, Hashable {
  let device: dev_t
  let number: ino_t

  private init(_ status: stat) {
    device = status.st_dev
    number = status.st_ino
  }

  /// Whether a path leads to a file without a byte in it.
  static func isEmpty(path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_size == 0
  }

  /// The file a path leads to, links followed; nil when there is none.
  init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  init?(descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }
}
