import HostKit

/// One live row as the server keeps it.
public struct StoredRow: Sendable, Hashable {
  public var cells: [String: JSONValue]
  /// The seq of its newest change.
  public var seq: Int64
  /// The text of its bucket column; nil when null or when the table has no buckets.
  public var bucket: ByteKey?
  /// The origin clock that wrote each column last, on tables that resolve by it.
  public var clocks: [String: HLCStamp] = [:]
  /// What the change at `seq` overwrote, on tables that journal it.
  public var overwritten: [OverwrittenCell] = []
}

/// A value that lost against the newest change of its row.
public struct OverwrittenCell: Sendable, Hashable {
  public var column: String
  public var value: JSONValue
  public var winner: String
  public var mode: SyncTable.ConflictMode
}

/// The mark a row leaves in a bucket it was deleted from or moved out of.
public struct Tombstone: Sendable, Hashable {
  public var seq: Int64
  /// Milliseconds since 1970.
  public var deletedAt: Int64
}

/// One tombstone per row and bucket value.
public struct TombstoneKey: Sendable, Hashable {
  public var key: ByteKey
  public var bucket: ByteKey?
}

/// That a user was shown a live row of a bucket, and may therefore hear of its deletions.
public struct Grant: Sendable, Hashable {
  public var user: ByteKey
  public var table: String
  public var bucket: ByteKey?
}

/// A decided mutation (Kizuna wire contract §12.5).
public struct LedgerEntry: Sendable, Hashable {
  /// Nil when it was applied.
  public var reason: RejectionReason?
  public var user: String
  public var table: String
  public var key: ByteKey
  /// Whether the verdict shows the row although it was applied.
  public var showsRow: Bool
  /// Milliseconds since 1970.
  public var decidedAt: Int64
}
