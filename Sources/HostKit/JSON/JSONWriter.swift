/// Writes JSON in one fixed form: members sorted by the bytes of their names, only the escapes the grammar demands,
/// numbers as their digits. Equal values therefore give equal bytes.
public struct JSONWriter {
  public private(set) var bytes: [UInt8] = []
  private let indent: Int?

  /// - Parameter indent: spaces a level, one member a line; nil writes everything on one line without spaces.
  public init(indent: Int? = nil) {
    self.indent = indent
  }

  public static func text(_ value: JSONValue, indent: Int? = nil) -> String {
    String(decoding: data(value, indent: indent), as: UTF8.self)
  }

  public static func data(_ value: JSONValue, indent: Int? = nil) -> [UInt8] {
    var writer = JSONWriter(indent: indent)
    writer.write(value)
    return writer.bytes
  }

  public mutating func write(_ value: JSONValue) {
    write(value, level: 0)
  }

  private mutating func write(_ value: JSONValue, level: Int) {
    switch value {
    case .null: raw("null")
    case .bool(let value): raw(value ? "true" : "false")
    case .number(let value): raw(value.lexeme)
    case .string(let value): write(string: value)
    case .array(let elements):
      container("[", "]", elements, level: level) { writer, element in writer.write(element, level: level + 1) }
    case .object(let members):
      let sorted = members.sorted { Self.bytewise($0.key, $1.key) }
      container("{", "}", sorted, level: level) { writer, member in
        writer.write(string: member.key)
        writer.raw(writer.indent == nil ? ":" : ": ")
        writer.write(member.value, level: level + 1)
      }
    }
  }

  private mutating func container<Element>(
    _ open: String, _ close: String, _ elements: [Element], level: Int, _ body: (inout JSONWriter, Element) -> Void
  ) {
    raw(open)
    for (index, element) in elements.enumerated() {
      if index > 0 { raw(",") }
      newline(level + 1)
      body(&self, element)
    }
    if !elements.isEmpty { newline(level) }
    raw(close)
  }

  private mutating func newline(_ level: Int) {
    guard let indent else { return }
    bytes.append(0x0A)
    bytes.append(contentsOf: repeatElement(0x20, count: indent * level))
  }

  public mutating func raw(_ text: String) {
    bytes.append(contentsOf: text.utf8)
  }

  /// A quoted string with the minimum of escapes, control characters as `\b \f \n \r \t` or `\u00xx`.
  public mutating func write(string: String) {
    bytes.append(0x22)
    for byte in string.utf8 {
      switch byte {
      case 0x22: raw("\\\"")
      case 0x5C: raw("\\\\")
      case 0x08: raw("\\b")
      case 0x0C: raw("\\f")
      case 0x0A: raw("\\n")
      case 0x0D: raw("\\r")
      case 0x09: raw("\\t")
      case 0..<0x20:
        raw("\\u00")
        bytes.append(Self.hexDigit(byte >> 4))
        bytes.append(Self.hexDigit(byte & 15))
      default: bytes.append(byte)
      }
    }
    bytes.append(0x22)
  }

  private static func hexDigit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 0x30 + nibble : 0x61 + nibble - 10 }

  /// Byte order, which is code point order; `String` compares by canonical equivalence, which is neither stable nor cheap.
  public static func bytewise(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}

extension JSONValue: CustomStringConvertible {
  /// The document in the fixed form of `JSONWriter`.
  public var description: String { JSONWriter.text(self) }
}
