#if Postgres
  /// A condition of a request, as PostgREST's query parameters spell it
  /// (https://docs.postgrest.org/en/stable/references/api/tables_views.html#horizontal-filtering).
  indirect enum Filter: Sendable, Hashable {
    enum Operator: String, Sendable, Hashable {
      case eq, neq, gt, gte, lt, lte, like, ilike, isdistinct, cs, cd, ov

      var sql: String {
        switch self {
        case .eq: "="
        case .neq: "<>"
        case .gt: ">"
        case .gte: ">="
        case .lt: "<"
        case .lte: "<="
        case .like: "LIKE"
        case .ilike: "ILIKE"
        case .isdistinct: "IS DISTINCT FROM"
        case .cs: "@>"
        case .cd: "<@"
        case .ov: "&&"
        }
      }
    }

    enum Is: String, Sendable, Hashable {
      case null, notNull = "not_null", yes = "true", no = "false", unknown

      var sql: String {
        switch self {
        case .null: "IS NULL"
        case .notNull: "IS NOT NULL"
        case .yes: "IS TRUE"
        case .no: "IS FALSE"
        case .unknown: "IS UNKNOWN"
        }
      }
    }

    case compare(column: String, Operator, String)
    case isOneOf(column: String, [String])
    case test(column: String, Is)
    case all([Filter])
    case any([Filter])
    case not(Filter)

    /// The condition as SQL; names are quoted and values are parameters.
    func sql(_ text: inout SQLText, table: String) -> String {
      func name(_ column: String) -> String { "\(table).\(PostgresStatement.quoted(column))" }
      switch self {
      case .compare(let column, let comparison, let value):
        let isPattern = comparison == .like || comparison == .ilike
        // An asterisk stands for the percent sign, which URLs have another use for.
        let value = isPattern ? String(value.map { $0 == "*" ? "%" : $0 }) : value
        return "\(name(column)) \(comparison.sql) \(text.bind(value))"
      case .isOneOf(let column, let values):
        return "\(name(column)) = ANY(\(text.bind(Self.array(values))))"
      case .test(let column, let test): return "\(name(column)) \(test.sql)"
      case .all(let filters):
        return Self.joined(filters, " AND ", &text, table)
      case .any(let filters):
        return Self.joined(filters, " OR ", &text, table)
      case .not(let filter): return "NOT (" + filter.sql(&text, table: table) + ")"
      }
    }

    /// At least one condition in parentheses.
    private static func joined(_ filters: [Filter], _ word: String, _ text: inout SQLText, _ table: String) -> String {
      "(" + filters.map { $0.sql(&text, table: table) }.joined(separator: word) + ")"
    }

    /// Texts as an array of SQL.
    private static func array(_ values: [String]) -> String {
      let quoted = values.map { value -> String in
        var text = "\""
        for scalar in value.unicodeScalars {
          if scalar == "\"" || scalar == "\\" { text += "\\" }
          text.unicodeScalars.append(scalar)
        }
        return text + "\""
      }
      return "{" + quoted.joined(separator: ",") + "}"
    }
  }

  /// The parameters of a statement while it is put together.
  struct SQLText: Sendable {
    private(set) var parameters: [String?] = []

    /// - Returns: what stands for the value in the statement.
    mutating func bind(_ value: String?) -> String {
      parameters.append(value)
      return "$\(parameters.count)"
    }
  }
#endif
