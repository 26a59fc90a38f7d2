/// A cell as SQLite keeps it.
enum SQLiteValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  /// Text whose bytes are not UTF-8. SQLite keeps any bytes; JSON has no spelling for these.
  case malformed([UInt8])
  case blob([UInt8])

  init(_ text: String?) {
    self = text.map(SQLiteValue.text) ?? .null
  }

  init(_ number: Int64?) {
    self = number.map(SQLiteValue.integer) ?? .null
  }

  var isNull: Bool { self == .null }

  var text: String? {
    if case .text(let value) = self { value } else { nil }
  }

  var integer: Int64? {
    if case .integer(let value) = self { value } else { nil }
  }
}

extension SQLiteValue {
  static func == (left: SQLiteValue, right: SQLiteValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.integer(let left), .integer(let right)): left == right
    case (.real(let left), .real(let right)): left == right
    // `String` holds two spellings of one character for equal; to a database they are two values.
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.malformed(let left), .malformed(let right)): left == right
    case (.blob(let left), .blob(let right)): left == right
    default: false
    }
  }
}

extension SQLiteValue: ExpressibleByNilLiteral, ExpressibleByIntegerLiteral, ExpressibleByStringLiteral {
  init(nilLiteral: ()) { self = .null }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(stringLiteral value: String) { self = .text(value) }
}
