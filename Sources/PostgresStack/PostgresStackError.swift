#if Postgres
  /// Why a database cannot be served.
  public enum PostgresStackError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It has Supabase's schemas, and not those of this package.
    case foreignSchemas
    /// The role that signs in may not become those that requests are answered as, or there are none.
    case roles(login: String, absent: [String], forbidden: [String])
    /// A table lacks a column that it is served by.
    case column(table: String, column: String)
    /// Tables, users or roles could not be made.
    case preparation(PostgresError)
    /// The database cannot be reached, or refuses the sign-in.
    case unreachable(String)

    public var description: String {
      switch self {
      case .foreignSchemas:
        "The database has the schemas of a Supabase project already, and they are left as they are; start with "
          + "--no-scaffolding, or use a database of its own."
      case .roles(let login, let absent, _) where !absent.isEmpty:
        "The database has no role \(absent.joined(separator: " and no role ")); let a superuser start this once without "
          + "--no-scaffolding, which makes what \(login) lacks."
      case .roles(let login, _, let forbidden):
        "Role \(login) may not become \(forbidden.joined(separator: " or ")), as whom requests are answered; let a "
          + "superuser do it once: GRANT \(forbidden.joined(separator: ", ")) TO \(PostgresStatement.quoted(login))"
      case .column(let table, let column):
        "Table \(table) of the database has no column \(column), which --table or the configuration names; name one that "
          + "it has, or add the column. Tables that are there already are served as they are."
      case .preparation(let error) where error.code == "42883" && error.message.contains("gen_salt"):
        "The database cannot keep passwords: this PostgreSQL lacks the extension pgcrypto, which is among the modules "
          + "that come with it, and in packages of their own on some systems (postgresql-contrib)."
      case .preparation(let error):
        "The database could not be prepared (SQLSTATE \(error.code): \(error.message)); the user of the URL must be a "
          + "superuser, or have the right in a database that is prepared already, with --no-scaffolding; without --user, and "
          + "with --jwt-secret, it needs fewer rights."
      case .unreachable(let reason): "The database cannot be used: \(reason)"
      }
    }
  }
#endif
