/// One synced table as configuration files declare it. The gateway and the development server read the same syntax:
///
/// ```
/// "tables": {
///   "todos": {
///     "bucket": {"owner": "owner_id"},       // or {"column": "team_id", "value": "42"}; absent: the whole table
///     "key": ["id"],                         // the default
///     "softDeleteColumn": "deleted_at",
///     "conflictMode": "arrival",             // or "hlc"
///     "syncMode": "read-write",              // or "pull-only"
///     "columns": {"done": "boolean"},        // kinds: text, number, numeric, boolean, json
///   },
/// }
/// ```
public struct TableDeclaration: Sendable, Hashable {
  public enum Bucket: Sendable, Hashable {
    case wholeTable
    /// The column holds the signed-in user's id.
    case owner(column: String)
    /// The column holds this value.
    case column(String, value: JSONValue)
  }

  public enum ConflictMode: String, Sendable, CaseIterable {
    case arrival, hlc
  }

  public enum SyncMode: String, Sendable, CaseIterable {
    case readWrite = "read-write"
    case pullOnly = "pull-only"
  }

  public enum ColumnKind: String, Sendable, CaseIterable {
    case text, number, numeric, boolean, json
  }

  public var bucket: Bucket
  public var key: [String]
  public var softDeleteColumn: String?
  public var conflictMode: ConflictMode
  public var syncMode: SyncMode
  public var columns: [String: ColumnKind]

  public init(
    bucket: Bucket = .wholeTable, key: [String] = ["id"], softDeleteColumn: String? = nil,
    conflictMode: ConflictMode = .arrival, syncMode: SyncMode = .readWrite, columns: [String: ColumnKind] = [:]
  ) {
    self.bucket = bucket
    self.key = key
    self.softDeleteColumn = softDeleteColumn
    self.conflictMode = conflictMode
    self.syncMode = syncMode
    self.columns = columns
  }

  /// The most tables one client may sync (a pull names at most 64 buckets; Kizuna wire contract, section 4.1).
  public static let maximumTables = 64

  /// The most columns of one table: the journal of changes keeps two values of each, and SQLite makes no table of more
  /// than 2,000 columns.
  public static let maximumColumns = 997

  /// What the configuration itself names of a table.
  public var namedColumns: Set<String> {
    var names = Set(key).union(columns.keys)
    switch bucket {
    case .wholeTable: break
    case .owner(let column), .column(let column, _): names.insert(column)
    }
    if let softDeleteColumn { names.insert(softDeleteColumn) }
    return names
  }

  /// Whether a text can name a table or a column (Kizuna wire contract, section 3).
  public static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, (0x61...0x7A).contains(first) else { return false }
    return text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
  }

  /// Whether SQLite keeps a name of a table for itself: it lets nobody make such a table, or has one of its own.
  public static func isReserved(_ table: String) -> Bool {
    table.hasPrefix("sqlite_") || table.hasPrefix("pragma_")
  }

  /// Nil when a text can name a table or a column, else what is wrong.
  static func nameProblem(_ text: String) -> String? {
    isName(text) ? nil : "must start with a lower-case letter and hold only a to z, 0 to 9 and _"
  }
}

extension TableDeclaration {
  /// Reads the member `tables` of a configuration: required, at least one table, at most 64.
  public static func decodeTables(_ root: ConfigurationObject) -> [String: TableDeclaration]? {
    root.object("tables", required: "the tables to sync, {\"name\": { … }}") { tables -> [String: TableDeclaration]? in
      if tables.keys.isEmpty { tables.problem(nil, "name at least one table") }
      if tables.keys.count > maximumTables {
        tables.problem(nil, "\(tables.keys.count) tables are too many; at most \(maximumTables) can be synced")
      }
      return tables.members { name, object in
        if let wrong = nameProblem(name) {
          object.problem(nil, "a table name \(wrong)")
        } else if isReserved(name) {
          object.problem(
            nil, "names that begin with sqlite_ or pragma_ are reserved by SQLite; call the table otherwise")
        }
        return decode(object)
      }
    }
  }

  /// Reads one table; unusable options are on record and take their default.
  static func decode(_ object: ConfigurationObject) -> TableDeclaration {
    let key = object.strings("key") { nameProblem($0).map { "a column name \($0)" } } ?? ["id"]
    if key.isEmpty { object.problem("key", "this names no column; name the key's, or leave it out for [\"id\"]") }
    if Set(key).count < key.count { object.problem("key", "names a column twice") }
    let bucket = object.object("bucket", decodeBucket) ?? .wholeTable
    let softDelete = column(object, "softDeleteColumn")
    if let softDelete, key.contains(softDelete) {
      object.problem("softDeleteColumn", "must not be a key column")
    }
    let columns = object.object("columns") { columns -> [String: ColumnKind]? in
      for name in columns.keys {
        if let wrong = nameProblem(name) { columns.problem(name, "a column name \(wrong)") }
      }
      return columns.choices(of: ColumnKind.self)
    }
    let declaration = TableDeclaration(
      bucket: bucket, key: key, softDeleteColumn: softDelete,
      conflictMode: object.choice("conflictMode", of: ConflictMode.self) ?? .arrival,
      syncMode: object.choice("syncMode", of: SyncMode.self) ?? .readWrite, columns: columns ?? [:])
    let count = declaration.namedColumns.count
    if count > maximumColumns {
      object.problem("columns", "\(count) columns are too many for one table; at most \(maximumColumns) can be synced")
    }
    return declaration
  }

  private static func column(_ object: ConfigurationObject, _ name: String) -> String? {
    object.string(name) { nameProblem($0).map { "a column name \($0)" } }
  }

  private static func decodeBucket(_ object: ConfigurationObject) -> Bucket? {
    let owner = column(object, "owner")
    let named = column(object, "column")
    let value = object.bucketValue("value")
    object.refuseNull(["owner": "a string", "column": "a string", "value": "a string, a whole number, true or false"])
    if object.has("owner") == object.has("column") {
      object.problem(
        nil,
        "this must be either {\"owner\": column} or {\"column\": column, \"value\": …}; write one of them, or leave the bucket out for the whole table"
      )
      return nil
    }
    if let owner {
      if owner == "id" {
        object.problem("owner", "\"id\" names the row, not its owner; name the column with the user's id")
      }
      if object.has("value") {
        object.problem("value", "belongs to \"column\", and the value of an owner is the signed-in user; remove it")
      }
      return .owner(column: owner)
    }
    guard let named else { return nil }
    guard let value else {
      if !object.has("value") { object.problem(nil, "\"value\" is missing; add the one that the rows to sync have") }
      return nil
    }
    return .column(named, value: value)
  }
}

extension ConfigurationObject {
  /// A string, a whole number or a boolean: what may select a bucket (Kizuna wire contract, section 4.1).
  fileprivate func bucketValue(_ key: String) -> JSONValue? {
    scalar(key) { value in
      switch value {
      case .string, .bool: true
      case .number(let number): number.int64 != nil
      default: false
      }
    }
  }
}
