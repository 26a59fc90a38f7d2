/// How one table is synchronised and who may see its rows.
public struct SyncTable: Sendable, Hashable {
  /// The stand-in for row-level security.
  public enum Policy: Sendable, Hashable {
    /// A row can be read and written by the user this column names, and by nobody else.
    case owner(column: String)
    /// Every signed-in user reads and writes every row.
    case everyone
  }

  public enum ConflictMode: String, Sendable {
    /// The last write to arrive wins, column by column.
    case arrival
    /// The write with the higher origin clock wins, column by column.
    case hlc
  }

  public enum SyncMode: String, Sendable {
    case readWrite = "read-write"
    case pullOnly = "pull-only"
  }

  /// The column whose value divides the table into buckets; nil for a table that is pulled whole.
  public var bucketColumn: String?
  public var policy: Policy
  public var keyColumns: [String]
  public var conflictMode: ConflictMode
  public var syncMode: SyncMode
  /// Whether overwritten values are remembered and delivered with the row that overwrote them.
  public var conflictJournal: Bool
  /// Clients with a lower schema version are told to reset.
  public var minSchemaVersion: Int
  /// Days a tombstone is kept; nil uses the server's setting.
  public var tombstoneTTLDays: Int?
  /// A column clients stamp instead of deleting. The server only carries it.
  public var softDeleteColumn: String?
  /// The types of the columns that have one; a column without a type takes any JSON.
  public var columns: [String: ColumnType]
  /// True when `columns` lists every column: others are refused, and those never written read as null.
  public var isClosed: Bool
  /// Whether rows carry their key columns even when a write did not name them, as rows of a database table do.
  public var includesKeyColumns: Bool
  /// Columns clients may not read: absent from rows.
  public var unreadableColumns: Set<String>
  /// Columns clients may not write: a mutation naming one is `COLUMN_DENIED`.
  public var unwritableColumns: Set<String>

  /// - Parameter policy: nil means the owner is named by the bucket column, or everyone where there is none.
  public init(
    bucketColumn: String? = nil, policy: Policy? = nil, keyColumns: [String] = ["id"],
    conflictMode: ConflictMode = .arrival, syncMode: SyncMode = .readWrite, conflictJournal: Bool = false,
    minSchemaVersion: Int = 1, tombstoneTTLDays: Int? = nil, softDeleteColumn: String? = nil,
    columns: [String: ColumnType] = [:], isClosed: Bool = false, includesKeyColumns: Bool = false,
    unreadableColumns: Set<String> = [], unwritableColumns: Set<String> = []
  ) {
    self.bucketColumn = bucketColumn
    self.policy = policy ?? bucketColumn.map { .owner(column: $0) } ?? .everyone
    self.keyColumns = keyColumns
    self.conflictMode = conflictMode
    self.syncMode = syncMode
    self.conflictJournal = conflictJournal
    self.minSchemaVersion = minSchemaVersion
    self.tombstoneTTLDays = tombstoneTTLDays
    self.softDeleteColumn = softDeleteColumn
    self.columns = columns
    self.isClosed = isClosed
    self.includesKeyColumns = includesKeyColumns
    self.unreadableColumns = unreadableColumns
    self.unwritableColumns = unwritableColumns
  }
}
