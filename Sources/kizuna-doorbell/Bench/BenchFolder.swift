import Glibc
import HostKit

/// A folder for a bench's databases, which goes when the bench ends, also by a signal.
struct BenchFolder: Sendable {
  let path: String

  private static let all = Locked<[String]>([])

  static func with<Result>(_ body: (BenchFolder) async throws -> Result) async throws -> Result {
    let folder = try BenchFolder()
    ProcessSignals.shared.onStop {
      removeAll()
      ProcessEnd.exit(.interrupted)
    }
    do {
      let result = try await body(folder)
      removeAll()
      return result
    } catch {
      removeAll()
      throw error
    }
  }

  private init() throws {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/kizuna-bench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw CommandFailure(.database, "no folder can be made in \(parent): \(String(cString: strerror(errno)))")
    }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    Self.all.withLock { $0.append(path) }
  }

  /// Removes the files of the databases that begin with `name`.
  func clear(_ name: String) {
    Self.unlinkAll(in: path) { $0.hasPrefix(name) }
  }

  static func removeAll() {
    let paths = all.withLock { list in
      defer { list = [] }
      return list
    }
    for path in paths {
      unlinkAll(in: path) { _ in true }
      rmdir(path)
    }
  }

  private static func unlinkAll(in path: String, where matches: (String) -> Bool) {
    guard let entries = opendir(path) else { return }
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != "..", matches(name) { unlink(path + "/" + name) }
    }
    closedir(entries)
  }
}
