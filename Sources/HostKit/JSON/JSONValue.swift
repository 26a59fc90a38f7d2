/// A JSON document in memory, numbers as their digits. Equality is strict: `1` is not `1.0`, `false` is not `0`, and
/// strings are equal when their bytes are.
public enum JSONValue: Sendable, Hashable {
  case null
  case bool(Bool)
  case number(JSONNumber)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])
}

extension JSONValue {
  public static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    // `String` holds two spellings of one character for equal; to a database they are two values.
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.array(let left), .array(let right)): left == right
    case (.object(let left), .object(let right)): left == right
    default: false
    }
  }
}

extension JSONValue {
  /// Parses one document. Duplicate keys: the last one wins, as PostgREST and browsers do.
  ///
  /// - Throws: `JSONSyntaxError` with the byte offset.
  public init(parsing bytes: UnsafeRawBufferPointer) throws {
    var cursor = JSONCursor(bytes)
    self = try cursor.readValue()
    try cursor.expectEnd()
  }

  public init(parsing bytes: some Collection<UInt8>) throws {
    if let value = try bytes.withContiguousStorageIfAvailable({ try JSONValue(parsing: UnsafeRawBufferPointer($0)) }) {
      self = value
    } else {
      self = try Array(bytes).withUnsafeBytes { try JSONValue(parsing: $0) }
    }
  }

  public init(parsing text: String) throws {
    var text = text
    self = try text.withUTF8 { try JSONValue(parsing: UnsafeRawBufferPointer($0)) }
  }
}

extension JSONValue {
  public var isNull: Bool { self == .null }

  public var boolValue: Bool? {
    if case .bool(let value) = self { value } else { nil }
  }

  public var stringValue: String? {
    if case .string(let value) = self { value } else { nil }
  }

  public var numberValue: JSONNumber? {
    if case .number(let value) = self { value } else { nil }
  }

  /// The integer when this is a number that is one and fits.
  public var intValue: Int? {
    numberValue?.int64.flatMap { Int(exactly: $0) }
  }

  public var arrayValue: [JSONValue]? {
    if case .array(let value) = self { value } else { nil }
  }

  public var objectValue: [String: JSONValue]? {
    if case .object(let value) = self { value } else { nil }
  }

  /// A member of an object; nil when absent or when this is not an object.
  public subscript(key: String) -> JSONValue? {
    objectValue?[key]
  }

  public subscript(index: Int) -> JSONValue? {
    guard let array = arrayValue, array.indices.contains(index) else { return nil }
    return array[index]
  }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self = .null }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int) { self = .number(JSONNumber(value)) }
  public init(stringLiteral value: String) { self = .string(value) }
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
  }
}

extension JSONValue {
  public static func int(_ value: Int) -> JSONValue { .number(JSONNumber(value)) }
  public static func int(_ value: Int64) -> JSONValue { .number(JSONNumber(value)) }

  /// A string, or null for nil.
  public static func string(orNull value: String?) -> JSONValue { value.map(JSONValue.string) ?? .null }
}
