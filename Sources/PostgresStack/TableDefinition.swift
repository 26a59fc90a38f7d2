#if Postgres
  import HostKit
  import SyncServer

  /// The SQL that makes a table of a configuration, with the row policies that the embedded server would follow.
  struct TableDefinition {
    private let name: String
    private let table: SyncTable
    private var types: [String: String] = [:]

    init(_ name: String, _ table: SyncTable, _ declaration: TableDeclaration?) {
      self.name = name
      self.table = table
      for (column, type) in table.columns { types[column] = type.rawValue }
      for (column, kind) in declaration?.columns ?? [:] where kind == .number { types[column] = "double precision" }
      for key in table.keyColumns where types[key] == nil {
        types[key] = table.keyColumns.count == 1 ? "uuid" : "text"
      }
      if let bucket = table.bucketColumn, types[bucket] == nil {
        if case .owner = table.policy { types[bucket] = "uuid" } else { types[bucket] = "text" }
      }
    }

    private static let quoted = PostgresStatement.quoted

    var sql: String {
      let columns = types.sorted { $0.key < $1.key }.map { column, type -> String in
        var line = "\(Self.quoted(column)) \(type)"
        if table.keyColumns == [column], type == "uuid" { line += " DEFAULT gen_random_uuid()" }
        if owner == column { line += " NOT NULL DEFAULT " + (type == "uuid" ? "auth.uid()" : "auth.uid()::text") }
        return line
      }
      let key = "PRIMARY KEY (\(table.keyColumns.map(Self.quoted).joined(separator: ", ")))"
      let path = "public.\(Self.quoted(name))"
      let condition = owner.map { "\(Self.quoted($0))::text = (SELECT auth.uid()::text)" } ?? "true"
      let index = table.bucketColumn.map { "CREATE INDEX ON \(path) (\(Self.quoted($0)));" } ?? ""
      return """
        CREATE TABLE \(path) (\((columns + [key]).joined(separator: ", ")));
        \(index)
        ALTER TABLE \(path) ENABLE ROW LEVEL SECURITY;
        CREATE POLICY "kizuna-localstack" ON \(path) TO authenticated USING (\(condition)) WITH CHECK (\(condition));
        GRANT SELECT, INSERT, UPDATE, DELETE ON \(path) TO authenticated;
        GRANT ALL ON \(path) TO service_role
        """
    }

    private var owner: String? {
      if case .owner(let column) = table.policy { column } else { nil }
    }
  }
#endif
