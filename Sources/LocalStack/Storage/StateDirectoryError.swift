/// Why the state of a development server cannot be kept in its directory.
public enum StateDirectoryError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What was done to which path, and the system's word for it.
  case cannot(String, path: String, reason: String)
  /// Another server uses the directory.
  case inUse(String, processID: String)
  /// A line that is not what this version writes.
  case unreadable(path: String, line: Int)

  public var description: String {
    switch self {
    case .cannot(let what, let path, let reason): "\(path) cannot be \(what): \(reason)."
    case .inUse(let path, let processID):
      "Another server (process \(processID)) keeps its state in \(path); stop it or choose another directory."
    case .unreadable(let path, let line):
      "Line \(line) of \(path) is not state of this version; move the directory away to start afresh."
    }
  }
}
