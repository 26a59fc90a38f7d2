import Glibc

/// The way from a path through symbolic links to the file they lead to.
enum LinkPath {
  /// One name in one folder on the way.
  struct Step: Hashable, Sendable {
    var folder: String
    var name: String

    init(_ path: String) {
      folder = HostFile.directory(of: path)
      name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    }

    var path: String { folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)" }
  }

  /// As many links as the kernel follows.
  private static let longest = 40

  /// The path itself first, then each link's goal. Links among the folders are followed by whoever opens a folder.
  static func steps(of path: String) -> [Step] {
    var steps = [Step(path)]
    while steps.count <= longest, let last = steps.last, let goal = goal(of: last.path) {
      var next = Step(goal.hasPrefix("/") ? goal : "\(last.folder)/\(goal)")
      // A folder has one name here, and another one after a link among the folders was turned.
      if let folder = real(next.folder) { next.folder = folder }
      guard !steps.contains(next) else { break }
      steps.append(next)
    }
    return steps
  }

  private static func real(_ folder: String) -> String? {
    guard let text = realpath(folder, nil) else { return nil }
    defer { free(text) }
    return String(cString: text)
  }

  /// - Returns: nil for anything but a link.
  private static func goal(of path: String) -> String? {
    let size = Int(PATH_MAX)
    var buffer = [CChar](repeating: 0, count: size)
    let count = readlink(path, &buffer, size)
    guard count > 0, count < size else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
