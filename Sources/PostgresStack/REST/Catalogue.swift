#if Postgres
  import HostKit

  /// What is known of functions and tables. It is asked of the database when a name is first used, and again when a call
  /// shows that it is out of date.
  final class Catalogue: Sendable {
    struct Name: Sendable, Hashable {
      var schema: String
      var name: String

      var quoted: String { PostgresStatement.quoted(schema) + "." + PostgresStatement.quoted(name) }
    }

    private struct State {
      var functions: [Name: [FunctionShape]] = [:]
      var tables: [Name: TableShape] = [:]
    }

    private let pool: PostgresPool
    private let state = Locked(State())

    init(_ pool: PostgresPool) {
      self.pool = pool
    }

    /// Forgets everything, after the schema was changed.
    func forget() {
      state.withLock { $0 = State() }
    }

    /// The functions of that name.
    ///
    /// - Parameter accepts: whether what is remembered will do; else the database is asked.
    func functions(
      _ name: Name, where accepts: (FunctionShape) -> Bool
    ) async throws(PostgresError) -> [FunctionShape] {
      let known = state.withLock { $0.functions[name] ?? [] }.filter(accepts)
      if !known.isEmpty { return known }
      let rows = try await ask(FunctionShape.query, name)
      let found = (0..<rows.count).compactMap { FunctionShape(rows, $0) }
      state.withLock { $0.functions[name] = found.isEmpty ? nil : found }
      return found.filter(accepts)
    }

    /// Nil when there is no such table.
    func table(_ name: Name, where accepts: (TableShape) -> Bool) async throws(PostgresError) -> TableShape? {
      if let known = state.withLock({ $0.tables[name] }), accepts(known) { return known }
      let found = TableShape(try await ask(TableShape.query, name), 0)
      state.withLock { $0.tables[name] = found }
      return found
    }

    private func ask(_ query: String, _ name: Name) async throws(PostgresError) -> PostgresRows {
      // Types are spelled with their schema where no search path finds them.
      let statements = [
        PostgresStatement("SELECT set_config('search_path', 'pg_catalog', true)"),
        PostgresStatement(query, [name.schema, name.name]),
      ]
      return try await pool.transaction(statements).rows[1]
    }
  }
#endif
