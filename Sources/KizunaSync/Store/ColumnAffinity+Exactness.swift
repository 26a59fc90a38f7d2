import HostKit

extension ColumnAffinity {
  /// Whether a column of this type keeps a text of the server letter by letter: `00501` would become 501.
  func keeps(text: String) -> Bool {
    guard self != .none, self != .text, Self.looksNumeric(text) else { return true }
    if let integer = Int64(text) { return String(integer) == text && keeps(.integer(integer)) }
    return Double(text).flatMap(JSONNumber.init)?.lexeme == text
  }

  /// Whether a column of this type keeps a number of the server as it is, apart from how it is written. SQLite makes
  /// doubles of what it takes for a number, and says nothing when digits are lost.
  func keeps(_ cell: SQLiteValue) -> Bool {
    switch (self, cell) {
    case (.none, _), (.text, _): true
    case (.real, .integer(let value)): Int64(exactly: Double(value)) == value
    case (_, .text(let lexeme)):
      Double(lexeme).flatMap(JSONNumber.init).map { DecimalDigits($0.lexeme) == DecimalDigits(lexeme) } ?? false
    default: true
    }
  }
}

/// A decimal number without what its notation adds: `1.50`, `15e-1` and `1.5` are equal.
private struct DecimalDigits: Equatable {
  private var isNegative = false
  private var digits: [UInt8] = []
  /// Of the last digit.
  private var exponent = 0

  init(_ lexeme: String) {
    let parts = lexeme.utf8.split(maxSplits: 1) { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") }
    exponent = parts.count == 2 ? Int(String(parts[1]) ?? "") ?? 0 : 0
    var isFraction = false
    for byte in parts.first ?? lexeme.utf8[...] {
      switch byte {
      case UInt8(ascii: "-"): isNegative = true
      case UInt8(ascii: "."): isFraction = true
      default:
        digits.append(byte)
        // Exponents at the end of what an integer holds wrap: wrong, but as different from others as before.
        if isFraction { exponent &-= 1 }
      }
    }
    digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
    while digits.last == UInt8(ascii: "0") {
      digits.removeLast()
      exponent &+= 1
    }
    if digits.isEmpty { (isNegative, exponent) = (false, 0) }
  }
}

extension TableLayout.Column {
  /// Whether the type an app declared the column with keeps what the server sent.
  func keeps(_ value: JSONValue, as cell: SQLiteValue) -> Bool {
    switch value {
    case .number: declared.keeps(cell)
    case .string(let text): declared.keeps(text: text)
    default: true
    }
  }
}
