#if Postgres
  import HostKit

  /// A table or view as the database's catalogue describes it.
  struct TableShape: Sendable, Hashable {
    var columns: Set<String>
    var primaryKey: [String]

    static let query = """
      SELECT
        (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a
          WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
        (SELECT pg_catalog.json_agg(a.attname ORDER BY k.n)
          FROM pg_catalog.pg_index i, pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k(number, n),
            pg_catalog.pg_attribute a
          WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = k.number)
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
      WHERE s.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      """

    /// A row of `query`.
    init?(_ rows: PostgresRows, _ row: Int) {
      func names(_ column: Int) -> [String] {
        let list = rows.bytes(row, column).flatMap { try? JSONValue(parsing: $0) }?.arrayValue ?? []
        return list.compactMap(\.stringValue)
      }
      guard row < rows.count else { return nil }
      columns = Set(names(0))
      primaryKey = names(1)
    }
  }
#endif
