import HostKit

/// The visibility sweep: a row that the server stops showing because access to it was withdrawn leaves no tombstone, so
/// from time to time everything is read again from the start, and what is not there any more goes.
///
/// It is a rehydration (T5) with one difference: a row with changes that were not sent yet stays as it is until they are
/// decided.
extension Replica {
  /// What `MetaKey.rehydrating` holds.
  enum Rehydration {
    static let required: SQLiteValue = 1
    static let sweep: SQLiteValue = 2
  }

  /// Leaves everything as it is where it is about to be read again anyway.
  func beginSweep() throws {
    try transaction {
      try database.setMeta(.sweepAsked, .null)
      guard try durableCursor() != "0", try !isRehydrating() else { return }
      try clearStaging()
      try database.setMeta(.rehydrating, Rehydration.sweep)
    }
  }

  func isSweeping() throws -> Bool { try database.meta(.rehydrating) == Rehydration.sweep }

  /// Puts the sweep off: transfers begin at the durable cursor again.
  func giveUpSweep() throws {
    try transaction {
      guard try isSweeping() else { return }
      try clearStaging()
      try database.setMeta(.rehydrating, .null)
    }
  }

  func isSweepAsked() throws -> Bool { try !database.meta(.sweepAsked).isNull }

  /// Whether a row that a sweep did not find is left alone: what was changed here is not decided yet.
  func isSpared(_ id: RowID) throws -> Bool {
    guard try image(id.table, pk: id.pk)?.row != nil else { return false }
    return try database.exists(
      "SELECT 1 FROM _kizunasync_outbox WHERE tbl = ? AND pk = ? AND state < 2", .text(id.table), .text(id.pk))
  }

  /// Takes down when everything was compared, and what was left.
  func noteWholeState(spared: Int) throws {
    try database.setMeta(.sweptAt, .integer(clock.wallMilliseconds))
    try database.setMeta(.hiddenRowsKept, spared == 0 ? .null : .integer(Int64(spared)))
    if spared > 0 { log.warning("store.hidden_rows_kept", ["rows": .int(spared)]) }
  }
}
