/// Which write wins when two devices change the same column.
public enum KizunaSyncConflictMode: String, Sendable {
  /// The write that reaches the server last.
  case arrival
  /// The write with the later hybrid logical clock, however late it arrives.
  case hlc
}

/// Which way rows of a table travel.
public enum KizunaSyncSyncMode: String, Sendable {
  case readWrite = "read-write"
  /// Local writes are refused.
  case pullOnly = "pull-only"
}

/// Which rows of a table this client is interested in: those whose bucket column has one value.
public enum KizunaSyncBucket: Equatable, Sendable {
  /// The whole table.
  case none
  /// The named column holds the signed-in user's id, which the client learns from the first access token.
  case byOwner(String)
  /// The named column holds a value the app sets with ``KizunaSyncClient/setBucket(_:)``.
  case byColumn(String)
}

/// A column that refers to a file in a storage bucket. Accepted and validated; files are not moved by this
/// implementation.
public struct KizunaSyncAttachmentSpec: Equatable, Sendable {
  public var storageBucket: String
  public var ownerColumn: String

  public init(storageBucket: String, ownerColumn: String) {
    self.storageBucket = storageBucket
    self.ownerColumn = ownerColumn
  }
}

/// How the values of a column are kept in SQLite. Columns without a configured kind learn theirs from the server's rows.
public enum KizunaSyncColumnKind: String, Sendable, CaseIterable {
  case text
  /// Integers up to 64 bits and doubles as native numbers; a number that would lose digits is kept as text.
  case number
  /// Exact decimals: always the server's digits, as text.
  case numeric
  /// 0 and 1 in SQLite, `true` and `false` everywhere else.
  case boolean
  /// Objects, arrays and other JSON, as JSON text.
  case json
}

/// One synced table. The options must agree with what the server was provisioned with.
public struct KizunaSyncTableConfig: Equatable, Sendable {
  public var bucket: KizunaSyncBucket
  public var attachments: [String: KizunaSyncAttachmentSpec]
  /// A column whose non-null value means "deleted"; such a table is never hard-deleted.
  public var softDeleteColumn: String?
  public var conflictMode: KizunaSyncConflictMode
  public var syncMode: KizunaSyncSyncMode
  /// The primary key's columns in index order.
  public var key: [String]
  /// Kinds of columns known in advance. Optional: kinds are learned from the server otherwise.
  public var columns: [String: KizunaSyncColumnKind]

  public init(
    bucket: KizunaSyncBucket = .none, attachments: [String: KizunaSyncAttachmentSpec] = [:],
    softDeleteColumn: String? = nil, conflictMode: KizunaSyncConflictMode = .arrival,
    syncMode: KizunaSyncSyncMode = .readWrite, key: [String] = ["id"],
    columns: [String: KizunaSyncColumnKind] = [:]
  ) {
    self.bucket = bucket
    self.attachments = attachments
    self.softDeleteColumn = softDeleteColumn
    self.conflictMode = conflictMode
    self.syncMode = syncMode
    self.key = key
    self.columns = columns
  }
}
