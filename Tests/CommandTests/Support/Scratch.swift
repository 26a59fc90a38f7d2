import Glibc
import HostKit

/// A folder for one test.
struct Scratch: Sendable {
  let path: String

  /// Removes the folder when `body` is done.
  static func with<Result>(_ body: (Scratch) async throws -> Result) async throws -> Result {
    var template = Array("/tmp/kizuna-command-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw HostFileError(path: "/tmp", code: errno) }
    let scratch = Scratch(path: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    do {
      let result = try await body(scratch)
      try await scratch.remove()
      return result
    } catch {
      try await scratch.remove()
      throw error
    }
  }

  /// Writes a file that only its owner may read, and returns its path.
  @discardableResult
  func write(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
    let file = path + "/" + name
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw HostFileError(path: file, code: errno) }
    defer { close(descriptor) }
    fchmod(descriptor, mode)
    guard StandardStreams.write(text, to: descriptor) else { throw HostFileError(path: file, code: errno) }
    return file
  }

  private func remove() async throws {
    _ = await (try ChildProcess(executable: "/bin/rm", arguments: ["-rf", path])).ending()
  }
}
