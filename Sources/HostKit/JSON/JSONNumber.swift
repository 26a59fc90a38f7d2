/// A JSON number kept as the digits it was written with, so that 64-bit integers and decimals survive unchanged.
public struct JSONNumber: Sendable, Hashable, CustomStringConvertible {
  /// The number as it stands in the document. Always valid by the JSON grammar.
  public let lexeme: String

  /// Takes a lexeme the parser has already checked.
  init(checked lexeme: String) {
    self.lexeme = lexeme
  }

  /// Takes any text; nil when it is not a JSON number.
  public init?(lexeme: String) {
    var bytes = lexeme
    let valid = bytes.withUTF8 { buffer -> Bool in
      var cursor = JSONCursor(UnsafeRawBufferPointer(buffer))
      guard let token = try? cursor.scanNumber() else { return false }
      return token == 0..<buffer.count
    }
    guard valid else { return nil }
    self.lexeme = bytes
  }

  public init(_ value: Int64) {
    lexeme = String(value)
  }

  public init(_ value: Int) {
    lexeme = String(value)
  }

  /// The shortest digits that read back as the same double; nil for infinities and NaN, which JSON cannot express.
  public init?(_ value: Double) {
    guard value.isFinite else { return nil }
    // "1e+16" is how Swift prints large doubles; it is valid JSON as it stands.
    var text = value.description
    if text.hasSuffix(".0") { text.removeLast(2) }
    lexeme = text
  }

  /// The value when the lexeme is an integer (no fraction, no exponent) that fits.
  public var int64: Int64? {
    Int64(lexeme)
  }

  /// The nearest double.
  public var double: Double {
    Double(lexeme) ?? .nan
  }

  /// True when there is neither a fraction nor an exponent.
  public var isInteger: Bool {
    lexeme.utf8.allSatisfy { $0 == UInt8(ascii: "-") || ($0 >= 0x30 && $0 <= 0x39) }
  }

  public var description: String { lexeme }
}
