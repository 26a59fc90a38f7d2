import HostKit

/// The textual filters of PostgREST addresses: `eq`, `not.in`, with values as text.
enum OperatorFilter {
  /// - Throws: `LOCAL_UNSUPPORTED` for another operator or a value it cannot take.
  static func predicate(_ column: String, operator name: String, value: String) throws -> Predicate {
    if name.hasPrefix("not.") {
      return .not(try predicate(column, operator: String(name.dropFirst(4)), value: value))
    }
    if let comparison = Predicate.Comparison(rawValue: name) {
      return .compare(column, comparison, scalar(value))
    }
    switch name {
    case "like": return .like(column, pattern: value, ignoringCase: false)
    case "ilike": return .like(column, pattern: value, ignoringCase: true)
    case "is":
      switch value.lowercased() {
      case "null": return .isValue(column, nil)
      case "true": return .isValue(column, true)
      case "false": return .isValue(column, false)
      default: throw KizunaSyncError(.localUnsupported, "the operator is takes null, true or false")
      }
    case "in": return .isIn(column, try list(value))
    default: throw KizunaSyncError(.localUnsupported, "there is no filter operator \(name)")
    }
  }

  /// Text that reads as a number, a boolean or null stands for that, as the server would cast it.
  private static func scalar(_ text: String) -> JSONValue {
    if let number = JSONNumber(lexeme: text) { return .number(number) }
    switch text {
    case "true": return true
    case "false": return false
    case "null": return nil
    default: return .string(text)
    }
  }

  /// `(a,"b,c",3)`: quoted members are text and may hold commas, `\` escapes inside quotes.
  private static func list(_ text: String) throws -> [JSONValue] {
    let malformed = KizunaSyncError(.localUnsupported, "the operator in takes a list like (a,b,\"c,d\")")
    guard text.hasPrefix("("), text.hasSuffix(")"), text.utf8.count >= 2 else { throw malformed }
    var members: [JSONValue] = []
    var rest = Array(text.dropFirst().dropLast())[...]
    if rest.allSatisfy(\.isWhitespace) { return [] }
    while true {
      rest = rest.drop(while: \.isWhitespace)
      var member = ""
      if rest.first == "\"" {
        rest = rest.dropFirst()
        var closed = false
        while let character = rest.popFirst() {
          if character == "\"" {
            closed = true
            break
          }
          guard character == "\\" else {
            member.append(character)
            continue
          }
          guard let escaped = rest.popFirst() else { throw malformed }
          member.append(escaped)
        }
        guard closed else { throw malformed }
        members.append(.string(member))
        rest = rest.drop(while: \.isWhitespace)
      } else {
        let plain = rest.prefix { $0 != "," }
        rest = rest.dropFirst(plain.count)
        members.append(scalar(TextMatch.trimmed(String(plain))))
      }
      guard let separator = rest.popFirst() else { return members }
      guard separator == "," else { throw malformed }
    }
  }
}
