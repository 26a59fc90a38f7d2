#if Postgres
  import CPostgres
  import HostKit

  /// Where a database is and who signs in there, as the connection URL said it. It never shows: it may hold a password.
  public struct PostgresAddress: Sendable, CustomStringConvertible, CustomReflectable {
    let url: String
    /// The password, to be removed from what libpq says.
    private let password: String?

    /// - Throws: `PostgresError` of class 08 when the text is no connection URL.
    public init(_ url: String) throws(PostgresError) {
      guard url.hasPrefix("postgres://") || url.hasPrefix("postgresql://"), SecretText.problem(url, .text) == nil else {
        throw Self.unreadable
      }
      // What libpq says of a URL that it cannot read shows parts of it.
      guard let options = PQconninfoParse(url, nil) else { throw Self.unreadable }
      defer { PQconninfoFree(options) }
      var found: String?
      var option = options
      while let keyword = option.pointee.keyword {
        if String(cString: keyword) == "password", let value = option.pointee.val { found = String(cString: value) }
        option += 1
      }
      self.url = url
      password = found
    }

    private static let unreadable = PostgresError(
      "08001", "this is not a connection URL, postgresql://USER:PASSWORD@HOST:PORT/DATABASE")

    /// A text of libpq, on one line and without the password.
    func reason(_ text: String) -> String {
      var text = text
      if let password, !password.isEmpty {
        while let range = text.firstRange(of: password) { text.replaceSubrange(range, with: "…") }
      }
      return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    public var description: String { "PostgresAddress" }
    public var customMirror: Mirror { Mirror(self, children: []) }
  }
#endif
