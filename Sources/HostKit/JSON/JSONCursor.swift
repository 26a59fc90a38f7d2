/// A forward-only reader over the bytes of one JSON document.
///
/// It can build values (`readValue`), or step over them and hand out their byte ranges (`skipValue`,
/// `forEachMember`, `forEachElement`), so a large answer can be taken apart without one object per cell.
/// Values nested deeper than `maximumDepth` are not built, because that would exhaust the stack; stepping over them needs
/// none.
public struct JSONCursor {
  public static let maximumDepth = 512

  public let bytes: UnsafeRawBufferPointer
  /// Offset of the next unread byte.
  public private(set) var offset: Int
  private var depth = 0

  public init(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) {
    self.bytes = bytes
    self.offset = offset
  }

  // MARK: Positions

  private func fail(_ reason: String) -> JSONSyntaxError { JSONSyntaxError(offset: offset, reason: reason) }

  private mutating func skipSpace() {
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x20, 0x0A, 0x0D, 0x09: offset += 1
      default: return
      }
    }
  }

  /// The next significant byte, not consumed; nil at the end.
  public mutating func peek() -> UInt8? {
    skipSpace()
    return offset < bytes.count ? bytes[offset] : nil
  }

  /// Only white space may follow.
  public mutating func expectEnd() throws(JSONSyntaxError) {
    if peek() != nil { throw fail("more text after the value") }
  }

  private mutating func expect(_ byte: UInt8, _ reason: String) throws(JSONSyntaxError) {
    guard peek() == byte else { throw fail(reason) }
    offset += 1
  }

  private mutating func enter() throws(JSONSyntaxError) {
    depth += 1
    if depth > Self.maximumDepth { throw fail("nested deeper than \(Self.maximumDepth) levels") }
  }

  // MARK: Containers

  /// Calls `body` for each member with the cursor placed at its value. `body` must consume exactly that value.
  public mutating func forEachMember(_ body: (String, inout JSONCursor) throws -> Void) throws {
    try expect(UInt8(ascii: "{"), "expected '{'")
    try enter()
    defer { depth -= 1 }
    if peek() == UInt8(ascii: "}") {
      offset += 1
      return
    }
    while true {
      guard peek() == UInt8(ascii: "\"") else { throw fail("expected a member name") }
      let name = try readString()
      try expect(UInt8(ascii: ":"), "expected ':'")
      try body(name, &self)
      switch peek() {
      case UInt8(ascii: ","): offset += 1
      case UInt8(ascii: "}"):
        offset += 1
        return
      default: throw fail("expected ',' or '}'")
      }
    }
  }

  /// Calls `body` for each element with the cursor placed at it. `body` must consume exactly that element.
  public mutating func forEachElement(_ body: (inout JSONCursor) throws -> Void) throws {
    try expect(UInt8(ascii: "["), "expected '['")
    try enter()
    defer { depth -= 1 }
    if peek() == UInt8(ascii: "]") {
      offset += 1
      return
    }
    while true {
      try body(&self)
      switch peek() {
      case UInt8(ascii: ","): offset += 1
      case UInt8(ascii: "]"):
        offset += 1
        return
      default: throw fail("expected ',' or ']'")
      }
    }
  }

  // MARK: Values

  /// Builds the value that starts here.
  public mutating func readValue() throws -> JSONValue {
    guard let first = peek() else { throw fail("expected a value") }
    switch first {
    case UInt8(ascii: "{"):
      var object: [String: JSONValue] = [:]
      try forEachMember { name, cursor in
        let value = try cursor.readValue()
        guard object.updateValue(value, forKey: name) != nil else { return }
        // The last of equal names counts; names that Swift alone takes for equal are two.
        guard let known = object.index(forKey: name), object.keys[known].utf8.elementsEqual(name.utf8) else {
          throw cursor.fail("two member names are different spellings of the same characters")
        }
      }
      return .object(object)
    case UInt8(ascii: "["):
      var array: [JSONValue] = []
      try forEachElement { cursor in array.append(try cursor.readValue()) }
      return .array(array)
    case UInt8(ascii: "\""):
      return .string(try readString())
    case UInt8(ascii: "t"):
      try literal("true")
      return .bool(true)
    case UInt8(ascii: "f"):
      try literal("false")
      return .bool(false)
    case UInt8(ascii: "n"):
      try literal("null")
      return .null
    default:
      let range = try scanNumber()
      return .number(JSONNumber(checked: String(decoding: bytes[range], as: UTF8.self)))
    }
  }

  /// Steps over the value that starts here and returns its byte range, without building anything.
  @discardableResult
  public mutating func skipValue() throws(JSONSyntaxError) -> Range<Int> {
    _ = peek()
    let start = offset
    /// Of each open container, whether it is an object.
    var open: [Bool] = []
    repeat {
      if let isObject = try skipScalarOrOpen() {
        open.append(isObject)
        if isObject { try skipName() }
        continue
      }
      try skipEnds(of: &open)
    } while !open.isEmpty
    return start..<offset
  }

  /// - Returns: whether a container that is not empty began here, and whether it is an object.
  private mutating func skipScalarOrOpen() throws(JSONSyntaxError) -> Bool? {
    switch peek() {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let isObject = bytes[offset] == UInt8(ascii: "{")
      offset += 1
      guard peek() == UInt8(ascii: isObject ? "}" : "]") else { return isObject }
      offset += 1
    case UInt8(ascii: "\""): try skipString()
    case UInt8(ascii: "t"): try literal("true")
    case UInt8(ascii: "f"): try literal("false")
    case UInt8(ascii: "n"): try literal("null")
    default: _ = try scanNumber()
    }
    return nil
  }

  /// After a value: up to the next one in an open container, or behind the last that ends here.
  private mutating func skipEnds(of open: inout [Bool]) throws(JSONSyntaxError) {
    while let isObject = open.last {
      switch peek() {
      case UInt8(ascii: ","):
        offset += 1
        if isObject { try skipName() }
        return
      case UInt8(ascii: isObject ? "}" : "]"):
        offset += 1
        open.removeLast()
      default: throw fail("expected ',' or '\(isObject ? "}" : "]")'")
      }
    }
  }

  private mutating func skipName() throws(JSONSyntaxError) {
    guard peek() == UInt8(ascii: "\"") else { throw fail("expected a member name") }
    try skipString()
    try expect(UInt8(ascii: ":"), "expected ':'")
  }

  private mutating func literal(_ word: StaticString) throws(JSONSyntaxError) {
    let count = word.utf8CodeUnitCount
    guard offset + count <= bytes.count else { throw fail("expected a value") }
    for index in 0..<count where bytes[offset + index] != word.utf8Start[index] {
      throw fail("expected a value")
    }
    offset += count
  }

  // MARK: Numbers

  /// Steps over a number by the JSON grammar and returns its byte range.
  public mutating func scanNumber() throws(JSONSyntaxError) -> Range<Int> {
    let start = offset
    func digit(_ at: Int) -> Bool { at < bytes.count && bytes[at] >= 0x30 && bytes[at] <= 0x39 }
    if offset < bytes.count, bytes[offset] == UInt8(ascii: "-") { offset += 1 }
    guard digit(offset) else { throw fail("expected a value") }
    if bytes[offset] == 0x30 {
      offset += 1
    } else {
      while digit(offset) { offset += 1 }
    }
    if digit(offset) { throw fail("a number must not start with 0") }
    if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
      offset += 1
      guard digit(offset) else { throw fail("expected a digit after '.'") }
      while digit(offset) { offset += 1 }
    }
    if offset < bytes.count, bytes[offset] == UInt8(ascii: "e") || bytes[offset] == UInt8(ascii: "E") {
      offset += 1
      if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") { offset += 1 }
      guard digit(offset) else { throw fail("expected a digit in the exponent") }
      while digit(offset) { offset += 1 }
    }
    return start..<offset
  }

  // MARK: Strings

  /// Steps over a string; true when it holds no escape, so that its bytes are its text.
  @discardableResult
  public mutating func skipString() throws(JSONSyntaxError) -> Bool {
    guard peek() == UInt8(ascii: "\"") else { throw fail("expected a string") }
    offset += 1
    var plain = true
    while offset < bytes.count {
      switch bytes[offset] {
      case UInt8(ascii: "\""):
        offset += 1
        return plain
      case UInt8(ascii: "\\"):
        plain = false
        offset += 1
        try skipEscape()
      case 0..<0x20: throw fail("a control character inside a string")
      default: offset += 1
      }
    }
    offset = bytes.count
    throw fail("unterminated string")
  }

  /// Steps over what follows a backslash.
  private mutating func skipEscape() throws(JSONSyntaxError) {
    guard offset < bytes.count else { throw fail("unterminated string") }
    switch bytes[offset] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      offset += 1
    case UInt8(ascii: "u"):
      guard hexUnit(at: offset + 1) != nil else { throw fail("expected four hex digits after \\u") }
      offset += 5
    default: throw fail("unknown escape")
    }
  }

  private func hexUnit(at start: Int) -> UInt32? {
    guard start + 4 <= bytes.count else { return nil }
    var value: UInt32 = 0
    for index in start..<(start + 4) {
      let byte = bytes[index]
      switch byte {
      case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
      case 0x41...0x46: value = value << 4 | UInt32(byte - 0x41 + 10)
      case 0x61...0x66: value = value << 4 | UInt32(byte - 0x61 + 10)
      default: return nil
      }
    }
    return value
  }

  /// Reads a string. Escaped surrogates without their partner become U+FFFD, because Swift text cannot hold them;
  /// bytes that are not UTF-8 are repaired the same way.
  public mutating func readString() throws(JSONSyntaxError) -> String {
    _ = peek()
    let start = offset
    if try skipString() {
      return String(decoding: bytes[(start + 1)..<(offset - 1)], as: UTF8.self)
    }
    return unescape((start + 1)..<(offset - 1))
  }

  /// The text between the quotes; `skipString` has checked every escape in it.
  private func unescape(_ range: Range<Int>) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(range.count)
    var at = range.lowerBound
    func append(_ scalar: UInt32) {
      let scalar = Unicode.Scalar(scalar) ?? "\u{FFFD}"
      out.append(contentsOf: UTF8.encode(scalar)!)  // every scalar has a UTF-8 form
    }
    while at < range.upperBound {
      let byte = bytes[at]
      guard byte == UInt8(ascii: "\\") else {
        out.append(byte)
        at += 1
        continue
      }
      at += 2
      switch bytes[at - 1] {
      case UInt8(ascii: "b"): out.append(0x08)
      case UInt8(ascii: "f"): out.append(0x0C)
      case UInt8(ascii: "n"): out.append(0x0A)
      case UInt8(ascii: "r"): out.append(0x0D)
      case UInt8(ascii: "t"): out.append(0x09)
      case UInt8(ascii: "u"):
        let unit = hexUnit(at: at) ?? 0xFFFD
        at += 4
        if unit >= 0xD800, unit < 0xDC00, at + 1 < range.upperBound, bytes[at] == UInt8(ascii: "\\"),
          bytes[at + 1] == UInt8(ascii: "u"), let low = hexUnit(at: at + 2), low >= 0xDC00, low < 0xE000
        {
          append(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
          at += 6
        } else {
          append(unit)
        }
      case let other: out.append(other)
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
