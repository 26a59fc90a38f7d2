#if Postgres
  import HostKit

  /// A function as the database's catalogue describes it.
  struct FunctionShape: Sendable, Hashable {
    struct Argument: Sendable, Hashable {
      /// Empty for an argument without a name.
      var name: String
      /// As SQL spells the type.
      var type: String
      var hasDefault: Bool
    }

    enum Result: Sendable, Hashable {
      case nothing
      /// One value, which may be JSON.
      case value
      /// One row.
      case row
      /// Rows or values, any number.
      case set
    }

    var arguments: [Argument]
    var result: Result

    static let query = """
      SELECT
        CASE
          WHEN p.proretset THEN 'set'
          WHEN p.prorettype = 'pg_catalog.void'::pg_catalog.regtype THEN 'nothing'
          WHEN t.typtype = 'c' OR p.prorettype = 'pg_catalog.record'::pg_catalog.regtype THEN 'row'
          ELSE 'value'
        END,
        coalesce((
          SELECT pg_catalog.json_agg(
            pg_catalog.json_build_object(
              'name', coalesce(a.name, ''), 'type', pg_catalog.format_type(a.type, NULL),
              'default', a.n > p.pronargs - p.pronargdefaults)
            ORDER BY a.n)
          FROM (
            SELECT
              all_of.type, all_of.name, pg_catalog.row_number() OVER (ORDER BY all_of.n) AS n
            FROM ROWS FROM (
              pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])),
              pg_catalog.unnest(p.proargnames), pg_catalog.unnest(p.proargmodes::text[])
            ) WITH ORDINALITY AS all_of (type, name, mode, n)
            WHERE coalesce(all_of.mode, 'i') IN ('i', 'b', 'v') AND all_of.type IS NOT NULL
          ) a
        ), '[]')
      FROM pg_catalog.pg_proc p
      JOIN pg_catalog.pg_namespace s ON s.oid = p.pronamespace
      JOIN pg_catalog.pg_type t ON t.oid = p.prorettype
      WHERE s.nspname = $1 AND p.proname = $2 AND p.prokind = 'f'
      """

    /// A row of `query`.
    init?(_ rows: PostgresRows, _ row: Int) {
      guard let result = rows.text(row, 0), let bytes = rows.bytes(row, 1),
        let list = (try? JSONValue(parsing: bytes))?.arrayValue
      else { return nil }
      switch result {
      case "nothing": self.result = .nothing
      case "row": self.result = .row
      case "set": self.result = .set
      default: self.result = .value
      }
      arguments = list.map { argument in
        Argument(
          name: argument["name"]?.stringValue ?? "", type: argument["type"]?.stringValue ?? "text",
          hasDefault: argument["default"]?.boolValue ?? false)
      }
    }

    /// Whether a call that names exactly these arguments is one of this function.
    func takes(_ names: Set<String>) -> Bool {
      names.isSubset(of: arguments.map(\.name)) && !names.contains("")
        && arguments.allSatisfy { $0.hasDefault || names.contains($0.name) }
    }

    /// One argument without a name that takes the body whole.
    var takesWholeBody: Bool {
      arguments.count == 1 && arguments[0].name.isEmpty && ["json", "jsonb"].contains(arguments[0].type)
    }

    /// The statement that calls the function and renders its result as JSON; nil in the cell for SQL NULL.
    ///
    /// - Parameters:
    ///   - name: qualified and quoted.
    ///   - names: the arguments that the body names.
    ///   - body: a JSON object, or what the one argument without a name takes. The database itself takes it apart, so that
    ///     every value is cast as PostgREST casts it.
    func call(_ name: String, _ names: Set<String>, body: String) -> PostgresStatement {
      let given = arguments.filter { names.contains($0.name) }
      let quoted = PostgresStatement.quoted
      let byName = given.map { "\(quoted($0.name)) => a.\(quoted($0.name))" }.joined(separator: ", ")
      let list = names.isEmpty && takesWholeBody ? "$1::\(arguments[0].type)" : byName
      let columns = given.map { "\(quoted($0.name)) \($0.type)" }.joined(separator: ", ")
      let source = given.isEmpty ? "" : "pg_catalog.json_to_record($1::json) AS a(\(columns))"
      let parameters: [String?] = list.isEmpty ? [] : [body]
      let call = "\(name)(\(list))"
      switch result {
      case .nothing, .value:
        let from = source.isEmpty ? "" : " FROM " + source
        if result == .nothing { return PostgresStatement("SELECT \(call)" + from, parameters) }
        return PostgresStatement("SELECT pg_catalog.to_json(\(call))::text" + from, parameters)
      case .row, .set:
        let from = source.isEmpty ? "\(call) r" : "\(source), LATERAL \(call) r"
        let value =
          result == .row ? "pg_catalog.to_json(r)::text" : "coalesce(pg_catalog.json_agg(r), '[]')::text"
        return PostgresStatement("SELECT \(value) FROM \(from)", parameters)
      }
    }
  }
#endif
