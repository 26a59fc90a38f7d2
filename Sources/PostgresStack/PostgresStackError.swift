#if Postgres
  /// Why a database cannot be served.
  public enum PostgresStackError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It has Supabase's schemas, and not those of this package.
    case foreignSchemas
    /// Tables, users or roles could not be made.
    case preparation(PostgresError)
    /// The database cannot be reached, or refuses the sign-in.
    case unreachable(String)

    public var description: String {
      switch self {
      case .foreignSchemas:
        "The database has the schemas of a Supabase project already, and they are left as they are; start with "
          + "--no-scaffolding, or use a database of its own."
      case .preparation(let error) where error.code == "42883" && error.message.contains("gen_salt"):
        "The database cannot keep passwords: this PostgreSQL lacks the extension pgcrypto, which is among the modules "
          + "that come with it, and in packages of their own on some systems (postgresql-contrib)."
      case .preparation(let error):
        "The database could not be prepared (SQLSTATE \(error.code): \(error.message)); the user of the URL must be a "
          + "superuser, or the database prepared already and --no-scaffolding given."
      case .unreachable(let reason): "The database cannot be used: \(reason)"
      }
    }
  }
#endif
