/// Reads JSON with comments (`// …` and `/* … */`) and trailing commas into nodes that know their place.
///
/// Duplicate keys and missing commas are collected and reading goes on, so that one look shows as much as possible; what
/// leaves the structure unclear ends the reading, with that problem last.
public struct ConfigurationParser {
  /// Deeper nesting is refused; no configuration needs it.
  public static let maximumDepth = 64

  private let scalars: [Unicode.Scalar]
  private var index = 0
  private var position = SourcePosition(line: 1, column: 1)
  private var problems: [ConfigurationProblem] = []
  private var path: [String] = []

  private struct Stop: Error {}

  private init(_ text: String) {
    scalars = Array(text.unicodeScalars)
    if scalars.first == "\u{FEFF}" { index = 1 }
  }

  /// - Returns: the document, nil when its structure is unclear, and everything found wrong on the way.
  public static func parse(_ text: String) -> (node: ConfigurationNode?, problems: [ConfigurationProblem]) {
    var parser = ConfigurationParser(text)
    do {
      let node = try parser.value()
      try parser.space()
      if let next = parser.peek() {
        try parser.stop("unexpected \(parser.spelled(next)) after the end of the configuration; remove it")
      }
      return (node, parser.problems)
    } catch {
      return (nil, parser.problems)
    }
  }

  // MARK: Scalars

  private func peek(_ ahead: Int = 0) -> Unicode.Scalar? {
    index + ahead < scalars.count ? scalars[index + ahead] : nil
  }

  private mutating func advance() {
    if scalars[index] == "\n" {
      position.line += 1
      position.column = 1
    } else {
      position.column += 1
    }
    index += 1
  }

  private func spelled(_ scalar: Unicode.Scalar) -> String {
    scalar.value < 0x20 || scalar.value == 0x7F ? "a control character" : "'\(scalar)'"
  }

  private mutating func report(_ message: String, at place: SourcePosition? = nil) {
    problems.append(
      ConfigurationProblem(
        position: place ?? position, path: path.joined(separator: "."), message: message))
  }

  private mutating func stop(_ message: String, at place: SourcePosition? = nil) throws -> Never {
    report(message, at: place)
    throw Stop()
  }

  /// Steps over white space and comments.
  private mutating func space() throws {
    while let next = peek() {
      switch next {
      case " ", "\n", "\r", "\t": advance()
      case "/" where peek(1) == "/":
        while let inside = peek(), inside != "\n" { _ = inside; advance() }
      case "/" where peek(1) == "*":
        let start = position
        advance()
        advance()
        while peek() != nil, !(peek() == "*" && peek(1) == "/") { advance() }
        if peek() == nil { try stop("this comment has no end; write */", at: start) }
        advance()
        advance()
      default: return
      }
    }
  }

  // MARK: Values

  private mutating func value() throws -> ConfigurationNode {
    try space()
    let start = position
    guard let next = peek() else { try stop("the file ends where a value is expected") }
    switch next {
    case "{": return ConfigurationNode(.object(try object()), at: start)
    case "[": return ConfigurationNode(.array(try array()), at: start)
    case "\"": return ConfigurationNode(.string(try string()), at: start)
    case "-", "0"..."9": return ConfigurationNode(.number(try number()), at: start)
    case "'": try stop("strings are written in double quotes")
    default: return ConfigurationNode(try word(), at: start)
    }
  }

  private func isWord(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "_" || scalar == "."
      || scalar == "+" || scalar == "-"
  }

  private mutating func rawWord() -> String {
    var text = String.UnicodeScalarView()
    while let next = peek(), isWord(next) {
      text.append(next)
      advance()
    }
    return String(text)
  }

  private mutating func word() throws -> ConfigurationNode.Value {
    let start = position
    let first = peek()
    switch rawWord() {
    case "true": return .bool(true)
    case "false": return .bool(false)
    case "null": return .null
    case "": try stop("unexpected \(first.map(spelled) ?? "end"); a value is expected", at: start)
    default:
      try stop("this is not a value; strings are written in double quotes", at: start)
    }
  }

  private mutating func number() throws -> JSONNumber {
    let start = position
    guard let number = JSONNumber(lexeme: rawWord()) else {
      try stop("this is not a number as JSON writes it, for example 15 or 0.5", at: start)
    }
    return number
  }

  private mutating func enter(_ name: String) throws {
    path.append(name)
    if path.count > Self.maximumDepth { try stop("nested deeper than \(Self.maximumDepth) levels") }
  }

  private mutating func object() throws -> [ConfigurationNode.Member] {
    var members: [ConfigurationNode.Member] = []
    var seen: [String: SourcePosition] = [:]
    let start = position
    advance()
    while true {
      try space()
      guard let next = peek() else { try stop("this '{' has no '}'", at: start) }
      if next == "}" { break }
      let place = position
      guard next == "\"" else {
        try stop("a key in double quotes is expected here, not \(spelled(next))")
      }
      let key = try string()
      try space()
      try enter(key)
      if let first = seen[key] {
        report("this key is here twice, first on line \(first.line); keep one", at: place)
      }
      seen[key] = seen[key] ?? place
      guard peek() == ":" else { try stop("':' is missing after the key") }
      advance()
      let value = try value()
      path.removeLast()
      members.append(.init(key: key, position: place, value: value))
      try separator(end: "}", start: start)
    }
    advance()
    return members
  }

  private mutating func array() throws -> [ConfigurationNode] {
    var elements: [ConfigurationNode] = []
    let start = position
    advance()
    while true {
      try space()
      guard let next = peek() else { try stop("this '[' has no ']'", at: start) }
      if next == "]" { break }
      try enter(String(elements.count))
      elements.append(try value())
      path.removeLast()
      try separator(end: "]", start: start)
    }
    advance()
    return elements
  }

  /// After a member or an element: a comma, or the end, which stays unread. A missing comma is reported and forgiven
  /// where what follows can only be the next entry.
  private mutating func separator(end: Unicode.Scalar, start: SourcePosition) throws {
    let place = position
    try space()
    switch peek() {
    case ",": advance()
    case end: break
    case "\"", "{", "[": report("',' is missing here", at: place)
    case nil: try stop("this '\(end == "}" ? "{" : "[")' has no '\(end)'", at: start)
    case let other?: try stop("',' or '\(end)' is expected here, not \(spelled(other))")
    }
  }

  private mutating func string() throws -> String {
    let start = position
    advance()
    var text = String.UnicodeScalarView()
    while true {
      guard let next = peek(), next != "\n" else {
        try stop("this string has no closing quote on its line", at: start)
      }
      switch next {
      case "\"":
        advance()
        return String(text)
      case "\\":
        text.append(try escape())
      case "\u{0}"..<"\u{20}":
        try stop("control characters are written as escapes, a tab as \\t")
      default:
        text.append(next)
        advance()
      }
    }
  }

  private mutating func escape() throws -> Unicode.Scalar {
    let start = position
    advance()
    let letter = peek()
    if letter != nil { advance() }
    switch letter {
    case "\"": return "\""
    case "\\": return "\\"
    case "/": return "/"
    case "b": return "\u{8}"
    case "f": return "\u{C}"
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "u":
      guard let unit = hexUnit() else { try stop("\\u needs four hex digits", at: start) }
      if (0xD800..<0xDC00).contains(unit), peek() == "\\", peek(1) == "u" {
        advance()
        advance()
        if let low = hexUnit(), (0xDC00..<0xE000).contains(low),
          let scalar = Unicode.Scalar(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        {
          return scalar
        }
      }
      guard let scalar = Unicode.Scalar(unit) else { try stop("half of a surrogate pair stands alone", at: start) }
      return scalar
    default: try stop("unknown escape; a backslash itself is written \\\\", at: start)
    }
  }

  private mutating func hexUnit() -> UInt32? {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let next = peek(), let digit = Character(next).hexDigitValue, next.isASCII else { return nil }
      value = value << 4 | UInt32(digit)
      advance()
    }
    return value
  }
}
