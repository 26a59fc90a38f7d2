import Foundation
import HostKit

/// What cells become without losing anything. A value that does not fit exactly is a mismatch, never rounded.
enum ExactScalar {
  /// The words for what a cell holds.
  static func kind(_ value: JSONValue) -> String {
    switch value {
    case .null: "is null"
    case .bool: "holds a boolean"
    case .number: "holds a number"
    case .string: "holds a text"
    case .array: "holds an array"
    case .object: "holds an object"
    }
  }

  /// SQLite has no booleans: in a table of plain SQL they are 0 and 1.
  static func bool(_ value: JSONValue) -> Bool? {
    switch value {
    case .bool(let flag): flag
    case .number(let number) where number.lexeme == "0": false
    case .number(let number) where number.lexeme == "1": true
    default: nil
    }
  }

  /// A number read as text is its digits.
  static func text(_ value: JSONValue) -> String? {
    switch value {
    case .string(let text): text
    case .number(let number): number.lexeme
    default: nil
    }
  }

  /// 64-bit integers may travel as their digits in a text (Kizuna wire contract §8).
  private static func number(_ value: JSONValue) -> JSONNumber? {
    switch value {
    case .number(let number): number
    case .string(let text): JSONNumber(lexeme: text)
    default: nil
    }
  }

  static func integer<Integer: FixedWidthInteger>(_ value: JSONValue, _ type: Integer.Type) -> Integer? {
    guard let number = number(value) else { return nil }
    if let integer = Integer(number.lexeme) { return integer }
    // `5.0`, `1e3` and `-0` are integers too.
    guard !number.isInteger || number.lexeme == "-0", let integer = Integer(exactly: number.double),
      let spelled = JSONNumber(lexeme: String(integer)), DecimalValue(spelled) == DecimalValue(number)
    else { return nil }
    return integer
  }

  /// The nearest double, if its shortest digits are the same number: 0.1 is one, 9007199254740993 is none.
  static func double(_ value: JSONValue) -> Double? {
    guard let number = number(value), let shortest = JSONNumber(number.double) else { return nil }
    return DecimalValue(shortest) == DecimalValue(number) ? number.double : nil
  }

  static func float(_ value: JSONValue) -> Float? {
    guard let number = number(value), let float = Float(number.lexeme), float.isFinite,
      let shortest = JSONNumber(lexeme: float.description)
    else { return nil }
    return DecimalValue(shortest) == DecimalValue(number) ? float : nil
  }

  /// From the digits, not by way of a double; nil when there are more of them than a `Decimal` holds.
  static func decimal(_ value: JSONValue) -> Decimal? {
    guard let number = number(value),
      let decimal = Decimal(string: number.lexeme, locale: Locale(identifier: "en_US_POSIX")),
      let spelled = JSONNumber(lexeme: decimal.description), DecimalValue(spelled) == DecimalValue(number)
    else { return nil }
    return decimal
  }

  static func uuid(_ value: JSONValue) -> UUID? {
    if case .string(let text) = value { UUID(uuidString: text) } else { nil }
  }

  static func url(_ value: JSONValue) -> URL? {
    if case .string(let text) = value { URL(string: text) } else { nil }
  }
}
