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

  /// Every link on the way, among the folders too, where each leads, and the place of the path itself.
  static func steps(of path: String) -> Set<Step> {
    var steps: Set<Step> = []
    follow(path, &steps)
    return steps
  }

  /// Where a path's last name stands, by the folder's only true name: the one it has here becomes another folder's when a
  /// link is turned.
  static func place(of path: String) -> Step {
    var step = Step(path)
    if let folder = real(step.folder) { step.folder = folder }
    return step
  }

  private static func follow(_ path: String, _ steps: inout Set<Step>) {
    var prefix = path.hasPrefix("/") ? "/" : ""
    let names = path.split(separator: "/")
    for (index, name) in names.enumerated() {
      prefix += (prefix.isEmpty || prefix.hasSuffix("/") ? "" : "/") + name
      let goal = goal(of: prefix)
      guard goal != nil || index == names.count - 1 else { continue }
      let step = place(of: prefix)
      guard steps.count <= longest, steps.insert(step).inserted else { continue }
      if let goal { follow(goal.hasPrefix("/") ? goal : "\(step.folder)/\(goal)", &steps) }
    }
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
