#if Postgres
  import HostKit

  /// The SQL for requests for a table. Its first cell is a JSON array of rows, the second a count.
  ///
  /// Values come from the request's JSON by way of the table's own row type, so the database casts them.
  struct TableStatement {
    /// Qualified and quoted.
    let table: String
    let query: TableQuery
    /// What the table is called in the statement: as it is called, so that the database's errors name it so.
    private let alias: String
    private var text = SQLText()

    init(_ name: Catalogue.Name, _ query: TableQuery) {
      table = name.quoted
      alias = Self.quoted(name.name)
      self.query = query
    }

    private static let quoted = PostgresStatement.quoted
    /// What the request's body is called; no table is called so.
    private static let body = "\"the body\""

    private var output: String {
      let list = query.output.map { output -> String in
        guard let column = output.column else { return alias + ".*" }
        return "\(alias).\(Self.quoted(column))" + (output.alias.map { " AS " + Self.quoted($0) } ?? "")
      }
      return list.joined(separator: ", ")
    }

    private mutating func conditions() -> String {
      query.filters.isEmpty ? "" : " WHERE " + Filter.all(query.filters).sql(&text, table: alias)
    }

    func select(countsAll: Bool) -> PostgresStatement {
      var copy = self
      let conditions = copy.conditions()
      var rows = "SELECT \(output) FROM \(table) AS \(alias)" + conditions
      if !query.order.isEmpty {
        rows +=
          " ORDER BY " + query.order.map { "\(alias).\(Self.quoted($0.column))\($0.words)" }.joined(separator: ", ")
      }
      if let limit = query.limit { rows += " LIMIT \(limit)" }
      if let offset = query.offset { rows += " OFFSET \(offset)" }
      let count = countsAll ? "(SELECT pg_catalog.count(*) FROM \(table) AS \(alias)\(conditions))" : "NULL::bigint"
      return PostgresStatement(
        "SELECT coalesce(pg_catalog.json_agg(r), '[]')::text, pg_catalog.count(*), \(count) FROM (\(rows)) r",
        copy.text.parameters)
    }

    /// - Parameters:
    ///   - columns: the columns that are written.
    ///   - conflict: the columns whose values decide whether a row is there already.
    func insert(
      _ body: String, columns: [String], conflict: [String], resolution: Preferences.Resolution?, returnsRows: Bool
    ) -> PostgresStatement {
      var copy = self
      let body = copy.text.bind(body)
      let names = columns.map(Self.quoted).joined(separator: ", ")
      var sql = "INSERT INTO \(table) AS \(alias)"
      if columns.isEmpty {
        // One row of defaults for each element.
        sql += " DEFAULT VALUES"
      } else {
        sql += " (\(names)) SELECT \(names) FROM pg_catalog.json_populate_recordset(NULL::\(table), \(body)::json)"
      }
      if let resolution, !conflict.isEmpty {
        sql += " ON CONFLICT (\(conflict.map(Self.quoted).joined(separator: ", ")))"
        let merged = columns.map { "\(Self.quoted($0)) = excluded.\(Self.quoted($0))" }.joined(separator: ", ")
        sql += resolution == .ignore || merged.isEmpty ? " DO NOTHING" : " DO UPDATE SET \(merged)"
      }
      return copy.written(sql, returnsRows, drops: columns.isEmpty)
    }

    func update(_ body: String, columns: [String], returnsRows: Bool) -> PostgresStatement {
      var copy = self
      let body = copy.text.bind(body)
      let list = columns.map { "\(Self.quoted($0)) = \(Self.body).\(Self.quoted($0))" }.joined(separator: ", ")
      let sql =
        "UPDATE \(table) AS \(alias) SET \(list) "
        + "FROM pg_catalog.json_populate_record(NULL::\(table), \(body)::json) AS \(Self.body)"
        + copy.conditions()
      return copy.written(sql, returnsRows)
    }

    func delete(returnsRows: Bool) -> PostgresStatement {
      var copy = self
      let sql = "DELETE FROM \(table) AS \(alias)" + copy.conditions()
      return copy.written(sql, returnsRows)
    }

    /// - Parameter drops: the parameters are not used.
    private func written(_ sql: String, _ returnsRows: Bool, drops: Bool = false) -> PostgresStatement {
      // Without the rows no right to read them is needed.
      let returning = returnsRows ? output : "1"
      let rows = returnsRows ? "coalesce(pg_catalog.json_agg(w), '[]')::text" : "NULL::text"
      return PostgresStatement(
        "WITH w AS (\(sql) RETURNING \(returning)) SELECT \(rows), pg_catalog.count(*) FROM w",
        drops ? [] : text.parameters)
    }
  }
#endif
