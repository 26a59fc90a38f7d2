/// One thing that is wrong with a configuration file, or that its owner should know.
public struct ConfigurationProblem: Sendable, Hashable, CustomStringConvertible {
  /// Nil for what is wrong with the file as a whole.
  public let position: SourcePosition?
  /// Where in the document, for example `tables.todos.bucket`; empty at the top.
  public let path: String
  /// What is wrong and what to do about it. Never contains a value that may be secret.
  public let message: String

  public init(position: SourcePosition?, path: String, message: String) {
    self.position = position
    self.path = path
    self.message = message
  }

  /// `12:5: tables.todos.bucket: …`
  public var description: String {
    (position.map { "\($0.line):\($0.column): " } ?? " ") + (path.isEmpty ? "" : path + ": ") + message
  }
}

/// Everything that is wrong with a configuration file, in the order of the file.
public struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The name of the file as the user gave it.
  public let file: String
  public let problems: [ConfigurationProblem]

  public init(file: String, problems: [ConfigurationProblem]) {
    self.file = file
    self.problems = problems.sorted { left, right in
      guard let one = left.position, let other = right.position else {
        return left.position == nil && right.position != nil
      }
      return one < other
    }
  }

  /// One line a problem: `file:line:column: key: what is wrong; what to do`.
  public var description: String {
    problems.map { "\(file):\($0)" }.joined(separator: "\n")
  }
}
