/// A cell as SQLite keeps it.
enum SQLiteValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
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

extension SQLiteValue: ExpressibleByNilLiteral, ExpressibleByIntegerLiteral, ExpressibleByStringLiteral {
  init(nilLiteral: ()) { self = .null }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(stringLiteral value: String) { self = .text(value) }
}
