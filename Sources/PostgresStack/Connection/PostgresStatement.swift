#if Postgres
  /// One statement with its parameters, which go beside it and never into its text.
  struct PostgresStatement: Sendable, Hashable {
    var sql: String
    /// Texts; nil is NULL.
    var parameters: [String?]

    init(_ sql: String, _ parameters: [String?] = []) {
      self.sql = sql
      self.parameters = parameters
    }

    /// Texts end at their first NUL on the way to the server.
    var holdsNUL: Bool {
      sql.utf8.contains(0) || parameters.contains { $0?.utf8.contains(0) == true }
    }

    /// A name as an identifier, whatever it holds.
    static func quoted(_ name: String) -> String {
      var text = "\""
      for scalar in name.unicodeScalars {
        if scalar == "\"" { text += "\"" }
        text.unicodeScalars.append(scalar)
      }
      return text + "\""
    }
  }
#endif
