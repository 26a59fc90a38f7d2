#if Postgres
  /// Reads the conditions of query parameters, decoded already.
  struct FilterParser {
    private let scalars: [Unicode.Scalar]
    private var at = 0

    private init(_ text: String) {
      scalars = Array(text.unicodeScalars)
    }

    /// `column=not.eq.value`
    static func filter(column: String, _ text: String) throws(RESTError) -> Filter {
      var parser = FilterParser(text)
      let filter = try parser.condition(on: try name(column), isNested: false)
      guard parser.isAtEnd else { throw refusal("a condition goes on after its end") }
      return filter
    }

    /// `or=(a.eq.1,and(b.gt.2,c.is.null))`
    static func group(_ word: String, _ text: String) throws(RESTError) -> Filter {
      var parser = FilterParser(text)
      let filter = try parser.group(isAny: word == "or")
      guard parser.isAtEnd else { throw refusal("a group of conditions goes on after its parenthesis") }
      return filter
    }

    /// `a,"b,c",d` as its elements, without the quotes.
    static func list(_ text: String) throws(RESTError) -> [String] {
      if text.isEmpty { return [] }
      var parser = FilterParser(text)
      var names: [String] = []
      while true {
        names.append(try parser.value(endingAt: [","]))
        if parser.isAtEnd { return names }
        guard parser.take(",") else { throw refusal("a list of names has something behind a quoted name") }
      }
    }

    /// A column's name, of which parts of other tables and of JSON values are not read here.
    static func name(_ text: String) throws(RESTError) -> String {
      if text.hasPrefix("\"") {
        let names = try list(text)
        guard names.count == 1 else { throw refusal("a quoted name has something behind it") }
        return names[0]
      }
      guard !text.isEmpty else { throw refusal("a name is missing") }
      guard !text.contains("->"), !text.contains("("), !text.contains("::") else {
        throw refusal("parts of JSON values, casts and tables inside of tables are not served by kizuna-localstack")
      }
      return text
    }

    static func refusal(_ details: String) -> RESTError {
      RESTError(400, "PGRST100", "The query parameters cannot be read", details: details)
    }

    // MARK: Grammar

    private mutating func group(isAny: Bool) throws(RESTError) -> Filter {
      guard take("(") else { throw Self.refusal("a group of conditions stands in parentheses") }
      var filters: [Filter] = []
      repeat { filters.append(try element()) } while take(",")
      guard take(")") else { throw Self.refusal("a group of conditions has no closing parenthesis") }
      return isAny ? .any(filters) : .all(filters)
    }

    private mutating func element() throws(RESTError) -> Filter {
      for (word, isAny, isNot) in [
        ("and(", false, false), ("or(", true, false), ("not.and(", false, true), ("not.or(", true, true),
      ] where peek(word) {
        at += word.unicodeScalars.count - 1
        let filter = try group(isAny: isAny)
        return isNot ? .not(filter) : filter
      }
      let column: String
      if scalars.indices.contains(at), scalars[at] == "\"" {
        column = try quoted()
      } else {
        column = try Self.name(text(endingAt: ["."]))
      }
      guard take(".") else { throw Self.refusal("a condition in a group is COLUMN.OPERATOR.VALUE") }
      return try condition(on: column, isNested: true)
    }

    /// What follows the column.
    private mutating func condition(on column: String, isNested: Bool) throws(RESTError) -> Filter {
      let word = text(endingAt: ["."])
      guard take(".") else { throw Self.refusal("a condition is OPERATOR.VALUE") }
      if word == "not" { return .not(try condition(on: column, isNested: isNested)) }
      let ends: [Unicode.Scalar] = isNested ? [",", ")"] : []
      switch word {
      case "in": return .isOneOf(column: column, try values())
      case "is":
        let text = text(endingAt: ends).lowercased()
        guard let test = Filter.Is(rawValue: text) else {
          throw Self.refusal("is takes null, not_null, true, false or unknown")
        }
        return .test(column: column, test)
      default:
        guard let comparison = Filter.Operator(rawValue: word) else {
          throw Self.refusal("\"\(word.prefix(20))\" is no operator that kizuna-localstack serves")
        }
        let value = isNested ? try nestedValue() : text(endingAt: [])
        return .compare(column: column, comparison, value)
      }
    }

    /// A value in a group: in quotes, or up to the comma or parenthesis; one in braces is an array or a range.
    private mutating func nestedValue() throws(RESTError) -> String {
      guard scalars.indices.contains(at), scalars[at] == "{" else { return try value(endingAt: [",", ")"]) }
      let array = text(endingAt: ["}"])
      guard take("}") else { throw Self.refusal("an array has no closing brace") }
      return array + "}"
    }

    private mutating func values() throws(RESTError) -> [String] {
      guard take("(") else { throw Self.refusal("in takes a list in parentheses") }
      if take(")") { return [] }
      var values: [String] = []
      repeat { values.append(try value(endingAt: [",", ")"])) } while take(",")
      guard take(")") else { throw Self.refusal("the list of in has no closing parenthesis") }
      return values
    }

    private mutating func value(endingAt ends: [Unicode.Scalar]) throws(RESTError) -> String {
      guard scalars.indices.contains(at), scalars[at] == "\"" else { return text(endingAt: ends) }
      return try quoted()
    }

    private mutating func quoted() throws(RESTError) -> String {
      at += 1
      var text = String.UnicodeScalarView()
      while at < scalars.count, scalars[at] != "\"" {
        if scalars[at] == "\\", at + 1 < scalars.count { at += 1 }
        text.append(scalars[at])
        at += 1
      }
      guard take("\"") else { throw Self.refusal("a quoted text has no closing quote") }
      return String(text)
    }

    private mutating func text(endingAt ends: [Unicode.Scalar]) -> String {
      var text = String.UnicodeScalarView()
      while at < scalars.count, !ends.contains(scalars[at]) {
        text.append(scalars[at])
        at += 1
      }
      return String(text)
    }

    private var isAtEnd: Bool { at == scalars.count }

    private func peek(_ word: String) -> Bool { scalars[at...].starts(with: word.unicodeScalars) }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
      guard at < scalars.count, scalars[at] == scalar else { return false }
      at += 1
      return true
    }
  }
#endif
