import HostKit

/// The name of a database, kept beside it.
struct InstanceFile {
  private let path: String

  /// - Parameter database: the database's path.
  init(_ database: String) {
    path = DatabaseFiles(database).instance
  }

  /// nil when there is none.
  func read() -> String? {
    guard let text = try? HostFile.readText(path, maximumBytes: 1024) else { return nil }
    let name = text.prefix { !$0.isNewline }
    return name.isEmpty ? nil : String(name)
  }

  /// On the disk when this returns.
  func write(_ name: String) throws(HostFileError) {
    try DurableFile.replace(path, with: Array("\(name)\n".utf8), mode: 0o644)
  }
}
