import HostKit

/// The type of a column, as far as a database would hold a value to it.
public enum ColumnType: String, Sendable, Hashable, CaseIterable {
  case uuid, text, smallint, integer, bigint, numeric, boolean, jsonb, date
  case double = "double precision"
  case timestamptz
  case textArray = "text[]"

  /// The type a name stands for, spelled as PostgreSQL does or by its short form (`int4`, `varchar`, `bool` …).
  public init?(name: String) {
    let synonyms: [String: ColumnType] = [
      "varchar": .text, "character varying": .text, "int2": .smallint, "int": .integer, "int4": .integer,
      "int8": .bigint, "decimal": .numeric, "bool": .boolean, "json": .jsonb, "double": .double, "real": .double,
      "float4": .double, "float8": .double, "timestamp with time zone": .timestamptz, "_text": .textArray,
    ]
    let name = name.lowercased()
    guard let type = ColumnType(rawValue: name) ?? synonyms[name] else { return nil }
    self = type
  }

  /// What the database refuses a value with.
  struct Refusal: Error, Hashable {
    /// An SQLSTATE of class 22.
    let code: String
    let message: String
  }

  /// The value as the column would hold it and render it again. Null stays null.
  ///
  /// Numbers and their decimal text are both accepted for numeric columns (Kizuna wire contract §8).
  func cast(_ value: JSONValue) throws(Refusal) -> JSONValue {
    if value.isNull { return .null }
    switch self {
    case .jsonb: return value
    case .text: return .string(Self.text(of: value) ?? JSONWriter.text(value))
    case .uuid:
      guard let text = value.stringValue, PrimaryKey.isUUID(text) else { throw refusal("22P02") }
      return .string(text.lowercased())
    case .smallint, .integer, .bigint: return try castInteger(value)
    case .numeric:
      guard let text = numericText(value), Decimal(text) != nil, let number = JSONNumber(lexeme: text) else {
        throw refusal("22P02")
      }
      return .number(number)
    case .double:
      guard let text = numericText(value), let double = Double(text) else { throw refusal("22P02") }
      guard double.isFinite, let number = JSONNumber(lexeme: text) ?? JSONNumber(double) else { throw refusal("22003") }
      return .number(number)
    case .boolean: return try castBoolean(value)
    case .date, .timestamptz:
      guard let text = value.stringValue, Self.looksLikeDate(text) else { throw refusal("22007") }
      return value
    case .textArray:
      guard let elements = value.arrayValue else { throw refusal("22P02") }
      return .array(
        try elements.map { element throws(Refusal) in
          if element.isNull { return .null }
          guard let text = Self.text(of: element) else { throw refusal("22P02") }
          return .string(text)
        })
    }
  }

  private func refusal(_ code: String) -> Refusal {
    Refusal(code: code, message: "invalid input for type \(rawValue)")
  }

  private func castInteger(_ value: JSONValue) throws(Refusal) -> JSONValue {
    guard let text = numericText(value), let decimal = Decimal(text), decimal.isInteger else { throw refusal("22P02") }
    guard let integer = Int64(decimal.description), integerRange.contains(integer) else { throw refusal("22003") }
    return .int(integer)
  }

  var integerRange: ClosedRange<Int64> {
    switch self {
    case .smallint: Int64(Int16.min)...Int64(Int16.max)
    case .integer: Int64(Int32.min)...Int64(Int32.max)
    default: Int64.min...Int64.max
    }
  }

  private func castBoolean(_ value: JSONValue) throws(Refusal) -> JSONValue {
    if case .bool = value { return value }
    switch value.stringValue?.lowercased() {
    case "true", "t", "yes", "on", "1": return true
    case "false", "f", "no", "off", "0": return false
    default: throw refusal("22P02")
    }
  }

  private func numericText(_ value: JSONValue) -> String? {
    value.numberValue?.lexeme ?? value.stringValue
  }

  private static func looksLikeDate(_ text: String) -> Bool {
    let pattern = "0000-00-00".utf8
    return text.utf8.count >= pattern.count
      && zip(text.utf8, pattern).allSatisfy { byte, expected in
        expected == UInt8(ascii: "0") ? (0x30...0x39).contains(byte) : byte == expected
      }
  }

  /// A scalar as text, the way a database prints a cell of a JSON object; nil for null, arrays and objects.
  static func text(of value: JSONValue) -> String? {
    switch value {
    case .string(let text): text
    case .number(let number): number.lexeme
    case .bool(let bool): bool ? "true" : "false"
    case .null, .array, .object: nil
    }
  }

  /// Whether two cells are the same value, for a column of this type or of none: a number and its text are, and so are
  /// two spellings of one number (Kizuna wire contract §5.4 step 6).
  static func same(_ left: JSONValue, _ right: JSONValue, type: ColumnType?) -> Bool {
    if let type {
      guard let left = try? type.cast(left), let right = try? type.cast(right) else { return false }
      return left == right || sameNumber(left, right)
    }
    return left == right || sameNumber(left, right)
  }

  private static func sameNumber(_ left: JSONValue, _ right: JSONValue) -> Bool {
    guard left.numberValue != nil || right.numberValue != nil else { return false }
    guard let left = number(left), let right = number(right) else { return false }
    return DecimalValue(left) == DecimalValue(right)
  }

  private static func number(_ value: JSONValue) -> JSONNumber? {
    value.numberValue ?? value.stringValue.flatMap(JSONNumber.init(lexeme:))
  }
}
