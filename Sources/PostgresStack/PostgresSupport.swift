/// Whether this build can serve a PostgreSQL database; that needs the package trait `Postgres` and libpq.
public enum PostgresSupport {
  #if Postgres
    public static let isBuilt = true
  #else
    public static let isBuilt = false
  #endif
}
