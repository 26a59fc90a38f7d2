/// One elementary change of a server's state. Everything the server remembers is the sum of such changes, so the same
/// type serves to take a transaction back, to journal it and to save the whole state.
public enum StateChange: Sendable, Hashable {
  /// The next seq to be drawn.
  case nextSeq(Int64)
  /// The highest seq of a tombstone that was reaped.
  case reapHorizon(Int64)
  /// A row's new image; nil removes it.
  case row(table: String, key: ByteKey, StoredRow?)
  case tombstone(table: String, TombstoneKey, Tombstone?)
  case grant(Grant, held: Bool)
  /// The verdict recorded under a mutation id; nil forgets it.
  case verdict(id: String, LedgerEntry?)
}
