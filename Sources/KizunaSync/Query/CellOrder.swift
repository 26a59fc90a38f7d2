import HostKit

/// How two cells compare. Text is compared by its bytes, never by Swift's canonical equivalence.
enum CellOrder {
  /// Numbers by value, everything else by structure.
  static func areEqual(_ left: JSONValue, _ right: JSONValue) -> Bool {
    switch (left, right) {
    case (.number(let left), .number(let right)):
      left.lexeme == right.lexeme || DecimalValue(left) == DecimalValue(right)
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.array(let left), .array(let right)): left.count == right.count && zip(left, right).allSatisfy(areEqual)
    case (.object(let left), .object(let right)):
      left.count == right.count
        && left.allSatisfy { key, value in right[key].map { areEqual(value, $0) } ?? false }
    default: left == right
    }
  }

  /// Both numbers: by value. Else the text of both by code point. Neither may be null.
  static func precedes(_ left: JSONValue, _ right: JSONValue) -> Bool {
    if case .number(let left) = left, case .number(let right) = right { return less(left, right) }
    return JSONWriter.bytewise(text(left), text(right))
  }

  /// For sorting, where the relation must be total: numbers come before everything else, as they do in SQLite.
  static func sortsBefore(_ left: JSONValue, _ right: JSONValue) -> Bool {
    switch (left.numberValue, right.numberValue) {
    case (.some(let left), .some(let right)): less(left, right)
    case (.some, nil): true
    case (nil, .some): false
    case (nil, nil): JSONWriter.bytewise(text(left), text(right))
    }
  }

  private static func less(_ left: JSONNumber, _ right: JSONNumber) -> Bool {
    if let left = left.int64, let right = right.int64 { return left < right }
    return DecimalValue(left) < DecimalValue(right)
  }

  /// A scalar as it reads; arrays and objects as JSON.
  static func text(_ value: JSONValue) -> String {
    switch value {
    case .string(let text): text
    case .number(let number): number.lexeme
    case .bool(let flag): flag ? "true" : "false"
    default: JSONWriter.text(value)
    }
  }

  /// Text that looks like a JSON array or object becomes one.
  static func decoded(_ value: JSONValue) -> JSONValue {
    guard case .string(let text) = value, let first = TextMatch.trimmed(text).utf8.first,
      first == UInt8(ascii: "[") || first == UInt8(ascii: "{"), let decoded = try? JSONValue(parsing: text)
    else { return value }
    return decoded
  }

  /// Array superset, object superset of members, identity of scalars.
  static func contains(_ whole: JSONValue, _ part: JSONValue) -> Bool {
    switch (decoded(whole), decoded(part)) {
    case (.array(let whole), .array(let part)):
      part.allSatisfy { member in whole.contains { areEqual($0, member) } }
    case (.object(let whole), .object(let part)):
      part.allSatisfy { key, value in whole[key].map { areEqual($0, value) } ?? false }
    case (let whole, let part): areEqual(whole, part)
    }
  }

  static func overlap(_ left: JSONValue, _ right: JSONValue) -> Bool {
    guard case .array(let left) = decoded(left), case .array(let right) = decoded(right) else { return false }
    return left.contains { member in right.contains { areEqual($0, member) } }
  }
}
