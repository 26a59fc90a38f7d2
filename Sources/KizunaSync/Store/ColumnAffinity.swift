/// What SQLite makes of the values of a column, by its declared type (SQLite's documentation on datatypes, §3.1).
enum ColumnAffinity: Equatable {
  case none, text, integer, real, numeric

  /// - Parameter isStrict: of the table; only there `ANY` takes values as they are.
  init(declaredType: String, isStrict: Bool) {
    let type = declaredType.uppercased()
    if type.contains("INT") {
      self = .integer
    } else if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") {
      self = .text
    } else if type.isEmpty || type.contains("BLOB") || (type == "ANY" && isStrict) {
      self = .none
    } else if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// Whether a column of integer affinity would make a number of the text (SQLite's documentation on datatypes, §3):
  /// decimal digits with an optional sign, point and exponent, between blanks.
  static func looksNumeric(_ text: String) -> Bool {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    var rest = Substring(text).utf8.drop(while: isBlank)
    func skipSign() {
      if rest.first == UInt8(ascii: "-") || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
    }
    func skipDigits() -> Int {
      let count = rest.prefix(while: isDigit).count
      rest = rest.dropFirst(count)
      return count
    }
    skipSign()
    var digits = skipDigits()
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      digits += skipDigits()
    }
    guard digits > 0 else { return false }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      skipSign()
      guard skipDigits() > 0 else { return false }
    }
    return rest.allSatisfy(isBlank)
  }
}
