import HostKit

typealias ColumnKind = KizunaSyncColumnKind

/// A row by column name. A name that is missing means absent, which is not the same as null.
typealias RowMap = [String: JSONValue]

/// Between JSON values and SQLite cells. The kind of the column decides where SQLite's types are too few.
enum CellCodec {
  static func encode(_ value: JSONValue, kind: ColumnKind?) -> SQLiteValue {
    if value.isNull { return .null }
    if kind == .json { return .text(JSONWriter.text(value)) }
    switch value {
    case .null: return .null
    case .bool(let value): return .integer(value ? 1 : 0)
    case .string(let text): return .text(text)
    case .number(let number): return encode(number, kind: kind)
    case .array, .object: return .text(JSONWriter.text(value))
    }
  }

  /// A number is kept natively only if SQLite gives back the same digits.
  static func encode(_ number: JSONNumber, kind: ColumnKind?) -> SQLiteValue {
    if kind == .numeric { return .text(number.lexeme) }
    if let integer = number.int64, number.lexeme != "-0" { return .integer(integer) }
    let double = number.double
    if JSONNumber(double)?.lexeme == number.lexeme { return .real(double) }
    return .text(number.lexeme)
  }

  static func decode(_ cell: SQLiteValue, kind: ColumnKind?) -> JSONValue {
    switch cell {
    case .null: return .null
    case .integer(let value):
      if kind == .boolean, value == 0 || value == 1 { return .bool(value == 1) }
      return .int(value)
    case .real(let value):
      // JSON has no infinities; PostgreSQL takes their names as text.
      return JSONNumber(value).map(JSONValue.number) ?? .string(value < 0 ? "-Infinity" : "Infinity")
    case .text(let text):
      if kind == .json, let value = try? JSONValue(parsing: text) { return value }
      return .string(text)
    case .malformed(let bytes), .blob(let bytes):
      return .string(hexadecimal(bytes))
    }
  }

  /// The kind a value shows; nil for null, which shows none.
  static func kind(of value: JSONValue) -> ColumnKind? {
    switch value {
    case .null: nil
    case .bool: .boolean
    case .number: .number
    case .string: .text
    case .array, .object: .json
    }
  }

  /// Whether cells of `kind` can hold a value that shows `seen`. Text and numbers share a column: SQLite keeps the type.
  static func fits(_ kind: ColumnKind, _ seen: ColumnKind) -> Bool {
    switch kind {
    case .json: true
    case .text, .number, .numeric: seen == .text || seen == .number
    case .boolean: seen == .boolean
    }
  }

  /// Whether a cell of the column gives the very value back.
  static func keeps(_ value: JSONValue, kind: ColumnKind) -> Bool {
    decode(encode(value, kind: kind), kind: kind) == value
  }

  /// As PostgreSQL spells bytes.
  static func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: Array("\\x".utf8) + bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}
