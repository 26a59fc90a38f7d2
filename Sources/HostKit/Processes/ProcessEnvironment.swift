import Glibc

/// The variables of this process.
public enum ProcessEnvironment {
  /// All of them; of two with one name the first counts, as for `getenv`.
  public static var variables: [String: String] {
    var variables: [String: String] = [:]
    for entry in entries {
      guard let equals = entry.firstIndex(of: "=") else { continue }
      let name = String(entry[..<equals])
      if variables[name] == nil { variables[name] = String(entry[entry.index(after: equals)...]) }
    }
    return variables
  }

  /// As they stand in memory, `NAME=value`.
  static var entries: [String] {
    var entries: [String] = []
    var next: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = environ
    while let entry = next.pointee {
      entries.append(String(cString: entry))
      next += 1
    }
    return entries
  }
}
