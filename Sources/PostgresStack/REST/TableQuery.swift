#if Postgres
  import LocalStack

  /// The query parameters of a request for a table.
  struct TableQuery: Sendable, Hashable {
    struct Output: Sendable, Hashable {
      /// Nil stands for all columns.
      var column: String?
      var alias: String?
    }

    struct Order: Sendable, Hashable {
      var column: String
      var words: String
    }

    private(set) var output = [Output()]
    private(set) var filters: [Filter] = []
    private(set) var order: [Order] = []
    private(set) var limit: Int?
    private(set) var offset: Int?
    private(set) var columns: [String]?
    private(set) var onConflict: [String]?

    init(_ request: StackRequest) throws(RESTError) {
      for (name, value) in request.parameters {
        switch name {
        case "apikey": break
        case "select": output = try Self.output(value)
        case "order": order = try Self.order(value)
        case "limit": limit = try Self.number(value, name)
        case "offset": offset = try Self.number(value, name)
        case "columns": columns = try FilterParser.list(value)
        case "on_conflict": onConflict = try FilterParser.list(value)
        case "or", "and": filters.append(try FilterParser.group(name, value))
        case "not.or", "not.and": filters.append(.not(try FilterParser.group(String(name.dropFirst(4)), value)))
        default: filters.append(try FilterParser.filter(column: name, value))
        }
      }
    }

    private static func number(_ text: String, _ name: String) throws(RESTError) -> Int {
      guard let number = Int(text), number >= 0 else { throw FilterParser.refusal("\(name) takes a number") }
      return number
    }

    private static func output(_ text: String) throws(RESTError) -> [Output] {
      var outputs: [Output] = []
      for part in try parts(text) {
        guard part != "*" else {
          outputs.append(Output())
          continue
        }
        let halves = part.hasPrefix("\"") ? [part] : part.split(separator: ":", maxSplits: 1).map(String.init)
        guard let column = halves.last, !part.contains("::") else { throw FilterParser.refusal("select holds no name") }
        outputs.append(
          Output(column: try FilterParser.name(column), alias: halves.count == 2 ? halves[0] : nil))
      }
      return outputs.isEmpty ? [Output()] : outputs
    }

    private static func order(_ text: String) throws(RESTError) -> [Order] {
      var orders: [Order] = []
      for part in try parts(text) {
        // A quoted name may hold dots.
        let close = part.hasPrefix("\"") ? part.lastIndex(of: "\"") ?? part.startIndex : part.startIndex
        let dot = part[close...].firstIndex(of: ".") ?? part.endIndex
        var words = ""
        for word in part[dot...].split(separator: ".") {
          switch word {
          case "asc": words += " ASC"
          case "desc": words += " DESC"
          case "nullsfirst": words += " NULLS FIRST"
          case "nullslast": words += " NULLS LAST"
          default: throw FilterParser.refusal("order takes asc, desc, nullsfirst and nullslast")
          }
        }
        orders.append(Order(column: try FilterParser.name(String(part[..<dot])), words: words))
      }
      return orders
    }

    /// Split at the commas outside of quotes.
    private static func parts(_ text: String) throws(RESTError) -> [String] {
      var parts: [String] = []
      var part = ""
      var isQuoted = false
      for character in text {
        if character == "\"" { isQuoted.toggle() }
        if character == ",", !isQuoted {
          parts.append(part)
          part = ""
        } else {
          part.append(character)
        }
      }
      if isQuoted { throw FilterParser.refusal("a quoted name has no closing quote") }
      parts.append(part)
      return parts.filter { !$0.isEmpty }
    }
  }
#endif
