import Foundation

/// Runs `body` with a folder of its own, which is removed afterwards with all it holds.
func withScratchFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
  let folder = ScratchFolder()
  defer { folder.remove() }
  return try body(folder.path)
}

func withScratchFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
  let folder = ScratchFolder()
  defer { folder.remove() }
  return try await body(folder.path)
}

/// A new folder under the system's temporary one, by its real path.
struct ScratchFolder {
  let path: String

  init() {
    var template = Array("\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/kizuna-test-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil)
    let real = realpath(template, nil)!
    defer { free(real) }
    path = String(cString: real)
  }

  func remove() {
    try? FileManager.default.removeItem(atPath: path)
  }
}
