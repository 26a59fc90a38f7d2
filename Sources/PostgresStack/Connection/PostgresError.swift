#if Postgres
  /// What the database, or the way to it, answered instead of a result.
  public struct PostgresError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The SQLSTATE, five characters; class `08` when the connection was not made or was lost.
    public let code: String
    public let message: String
    public let detail: String?
    public let hint: String?

    init(_ code: String, _ message: String, detail: String? = nil, hint: String? = nil) {
      self.code = code
      self.message = message
      self.detail = detail
      self.hint = hint
    }

    /// Nothing is known of what was asked last.
    public var isConnectionLost: Bool { code.hasPrefix("08") || code.hasPrefix("57P0") }

    public var description: String { "\(code): \(message)" }
  }
#endif
