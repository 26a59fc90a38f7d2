/// A place in a configuration file. Lines and columns count from 1; columns count Unicode scalars.
public struct SourcePosition: Sendable, Hashable, Comparable {
  public var line: Int
  public var column: Int

  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  public static func < (left: SourcePosition, right: SourcePosition) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

/// One value of a configuration file, with the place where it stands.
public struct ConfigurationNode: Sendable, Hashable {
  public enum Value: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([ConfigurationNode])
    case object([Member])
  }

  /// A member of an object, in the order of the file.
  public struct Member: Sendable, Hashable {
    public let key: String
    public let position: SourcePosition
    public let value: ConfigurationNode

    public init(key: String, position: SourcePosition, value: ConfigurationNode) {
      self.key = key
      self.position = position
      self.value = value
    }
  }

  public let value: Value
  public let position: SourcePosition

  public init(_ value: Value, at position: SourcePosition) {
    self.value = value
    self.position = position
  }

  /// What the value is, for messages: "a string", "an object".
  public var kind: String {
    switch value {
    case .null: "null"
    case .bool: "true or false"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
