/// Spelling of names and texts inside SQL that is built at run time. Values are always bound, never spelled.
enum SQL {
  static func name(_ identifier: String) -> String {
    "\"" + doubling(identifier, UInt8(ascii: "\"")) + "\""
  }

  static func names(_ identifiers: some Sequence<String>, prefix: String = "") -> String {
    identifiers.map { prefix + name($0) }.joined(separator: ", ")
  }

  /// `terms` joined by an operator like AND that may group them as it likes. SQLite limits how deep an expression may be
  /// (1,000 by default), and a plain chain is as deep as it is long.
  /// - Parameter terms: each must bind tighter than the operator, or be a chain of it.
  static func chain(_ terms: some Sequence<String>, _ operation: String) -> String {
    var parts = Array(terms)
    while parts.count > longestChain {
      parts = stride(from: 0, to: parts.count, by: longestChain).map {
        "(" + parts[$0..<min($0 + longestChain, parts.count)].joined(separator: " \(operation) ") + ")"
      }
    }
    return parts.joined(separator: " \(operation) ")
  }

  private static let longestChain = 64

  static func literal(_ text: String) -> String {
    "'" + doubling(text, UInt8(ascii: "'")) + "'"
  }

  /// Takes a prefix and a name in double quotes off the front.
  static func readName(_ text: inout Substring, after prefix: String) -> String? {
    var rest = text.utf8.dropFirst(prefix.utf8.count)
    let quote = UInt8(ascii: "\"")
    guard rest.popFirst() == quote else { return nil }
    var name: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == quote {
        guard rest.first == quote else {
          text = Substring(rest)
          return String(decoding: name, as: UTF8.self)
        }
        rest.removeFirst()
      }
      name.append(byte)
    }
    return nil
  }

  static func parameters(_ count: Int) -> String {
    repeatElement("?", count: count).joined(separator: ", ")
  }

  private static func doubling(_ text: String, _ quote: UInt8) -> String {
    guard text.utf8.contains(quote) else { return text }
    return String(decoding: text.utf8.flatMap { $0 == quote ? [quote, quote] : [$0] }, as: UTF8.self)
  }
}
