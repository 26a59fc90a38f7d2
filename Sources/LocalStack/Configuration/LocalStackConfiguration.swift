import HostKit
import SyncServer

/// What a development server serves.
public struct LocalStackConfiguration: Sendable {
  public struct User: Sendable, Hashable {
    public var email: String
    public var password: String

    public init(email: String, password: String) {
      self.email = email
      self.password = password
    }
  }

  public var tables: [String: SyncTable]
  public var users: [User]
  /// Nil takes the one kept in `directory`, or makes one up.
  public var jwtSecret: String?
  /// Where the state is kept; nil keeps it in memory only.
  public var directory: String?
  /// Seconds an access token is good for.
  public var accessTokenLifetime: Int64
  /// Seconds in which a refresh token may be used a second time, because the first answer was lost.
  public var refreshReuseInterval: Int64
  /// Whether requests must carry a key, as behind the hosted gateway.
  public var requiresAPIKey: Bool

  public init(
    tables: [String: SyncTable], users: [User] = [], jwtSecret: String? = nil, directory: String? = nil,
    accessTokenLifetime: Int64 = 3600, refreshReuseInterval: Int64 = 10, requiresAPIKey: Bool = true
  ) {
    self.tables = tables
    self.users = users
    self.jwtSecret = jwtSecret
    self.directory = directory
    self.accessTokenLifetime = accessTokenLifetime
    self.refreshReuseInterval = refreshReuseInterval
    self.requiresAPIKey = requiresAPIKey
  }

  /// The syntax of the command line, `NAME[:OWNERCOLUMN]`: each row belongs to the user its owner column names; without
  /// one everybody sees every row.
  /// - Throws: `UsageError` when the text is not of that form, or the owner column is the key.
  public static func table(argument: String) throws(UsageError) -> (name: String, table: SyncTable) {
    let parts = argument.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard (1...2).contains(parts.count), parts.allSatisfy(TableDeclaration.isName) else {
      throw UsageError("--table must be NAME or NAME:OWNERCOLUMN, of a to z, 0 to 9 and _; \"\(argument)\" is not")
    }
    guard !TableDeclaration.isReserved(parts[0]) else {
      throw UsageError("--table \(argument): names that begin with sqlite_ or pragma_ are reserved by SQLite")
    }
    guard parts.count == 1 || parts[1] != "id" else {
      throw UsageError("--table \(argument): \"id\" names the row, not its owner; name the column with the user's id")
    }
    return (parts[0], SyncTable(bucketColumn: parts.count == 2 ? parts[1] : nil, includesKeyColumns: true))
  }

  /// The syntax of the command line, `EMAIL:PASSWORD`. Nil when the text is not of that form.
  public static func user(argument: String) -> User? {
    guard let colon = argument.firstIndex(of: ":") else { return nil }
    let (email, password) = (argument[..<colon], argument[argument.index(after: colon)...])
    guard isEmail(String(email)), !password.isEmpty else { return nil }
    return User(email: String(email), password: String(password))
  }

  /// Whether a text can be an e-mail address: one `@` with something on both sides, nothing blank.
  public static func isEmail(_ text: String) -> Bool {
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } && SecretText.controlProblem(text) == nil
      && !text.contains(where: \.isWhitespace)
  }
}

extension SyncTable {
  /// The server's side of a table as configuration files declare it.
  public init(_ declaration: TableDeclaration) {
    var bucketColumn: String?
    var policy = Policy.everyone
    switch declaration.bucket {
    case .wholeTable: break
    case .owner(let column): (bucketColumn, policy) = (column, .owner(column: column))
    case .column(let column, _): bucketColumn = column
    }
    self.init(
      bucketColumn: bucketColumn, policy: policy, keyColumns: declaration.key,
      conflictMode: declaration.conflictMode == .hlc ? .hlc : .arrival,
      syncMode: declaration.syncMode == .pullOnly ? .pullOnly : .readWrite,
      softDeleteColumn: declaration.softDeleteColumn, columns: declaration.columns.compactMapValues(ColumnType.init),
      includesKeyColumns: true)
  }
}

extension ColumnType {
  /// Nil for `number`, which says nothing about range and scale.
  fileprivate init?(_ kind: TableDeclaration.ColumnKind) {
    switch kind {
    case .text: self = .text
    case .numeric: self = .numeric
    case .boolean: self = .boolean
    case .json: self = .jsonb
    case .number: return nil
    }
  }
}
