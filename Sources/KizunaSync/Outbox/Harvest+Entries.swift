import HostKit

/// Minting entries.
extension Harvest {
  mutating func enqueue(_ row: JournalRow, pk: String, op: KizunaSyncOp, columns: RowMap) throws {
    try insert(
      id: RandomUUID.make(), table: row.table, pk: pk, op: op, columns: columns, hlc: nil, group: row.group, at: row.at,
      captured: true)
  }

  mutating func enqueue(_ pending: PendingWrite, group: String?) throws {
    let write = pending.write
    try insert(
      id: write.mutationID ?? RandomUUID.make(), table: write.table, pk: pending.pk, op: write.op,
      columns: pending.columns, transforms: write.transforms, precondition: write.precondition, hlc: write.hlc,
      group: group, at: replica.clock.wallMilliseconds, captured: false)
  }

  /// A library write that left no journal row of its own: nothing was there, or nothing to change.
  mutating func append(_ write: PendingWrite) throws {
    let (table, pk) = (write.write.table, write.pk)
    if try replica.image(table, pk: pk) == nil {
      let layout = try replica.layout(table)
      try replica.setImage(
        table, pk: pk, replica.row(table, pk: pk).map { travelling($0, layout) },
        tombSeq: write.write.op == .update ? RowImage.unseen : RowImage.missing)
    }
    touch(Replica.RowID(table: table, pk: pk))
    pending = nil
    try enqueue(write, group: write.write.group)
  }

  private mutating func insert(
    id: String, table: String, pk: String, op: KizunaSyncOp, columns: RowMap, transforms: RowMap? = nil,
    precondition: RowMap? = nil, hlc: String?, group: String?, at: Int64, captured: Bool
  ) throws {
    func text(_ row: RowMap?) -> SQLiteValue { SQLiteValue(row.map { JSONWriter.text(.object($0)) }) }
    let stamp = try stamp(table, given: hlc, at: at)
    try database.run(
      "INSERT INTO _kizunasync_outbox(mutation_id, tbl, pk, op, columns, transforms, precondition, hlc, grp, captured, at) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      .text(id), .text(table), .text(pk), .text(op.rawValue), text(columns), text(transforms), text(precondition),
      SQLiteValue(stamp), SQLiteValue(group), .integer(captured ? 1 : 0), .integer(at))
  }

  /// Only `hlc` tables carry a stamp; one that the caller brings is passed through.
  private mutating func stamp(_ table: String, given: String?, at: Int64) throws -> String? {
    guard replica.settings.tables[table]?.conflictMode == .hlc else { return nil }
    if let given { return given }
    var clock = try clock ?? HybridClock(state: database.meta(.hlc).text, newNode: RandomUUID.make)
    defer { self.clock = clock }
    return clock.mint(at: at, now: replica.clock.wallMilliseconds)
  }
}
