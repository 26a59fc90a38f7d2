import HostKit

/// Minting entries.
extension Harvest {
  mutating func enqueue(_ row: JournalRow, pk: String, op: KizunaSyncOp, columns: RowMap) throws {
    try insert(
      id: nil, table: row.table, pk: pk, op: op, columns: columns, hlc: nil, group: row.group, at: row.at, row: row)
  }

  mutating func enqueue(_ pending: PendingWrite, group: String?) throws {
    let write = pending.write
    try insert(
      id: write.mutationID ?? RandomUUID.make(), table: write.table, pk: pending.pk, op: write.op,
      columns: pending.columns, transforms: write.transforms, precondition: write.precondition, hlc: write.hlc,
      group: group, at: replica.clock.wallMilliseconds, row: nil)
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

  /// - Parameter row: of a captured write; its id follows from it.
  private mutating func insert(
    id: String?, table: String, pk: String, op: KizunaSyncOp, columns: RowMap, transforms: RowMap? = nil,
    precondition: RowMap? = nil, hlc: String?, group: String?, at: Int64, row: JournalRow?
  ) throws {
    func text(_ row: RowMap?) -> SQLiteValue { SQLiteValue(row.map { JSONWriter.text(.object($0)) }) }
    let stamp = try stamp(table, given: hlc, at: at)
    let rendered = JSONWriter.text(.object(columns))
    func insert(_ id: String, _ verb: String) throws {
      try database.run(
        "\(verb) INTO _kizunasync_outbox(mutation_id, tbl, pk, op, columns, transforms, precondition, hlc, grp, captured, at) "
          + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        .text(id), .text(table), .text(pk), .text(op.rawValue), .text(rendered), text(transforms), text(precondition),
        SQLiteValue(stamp), SQLiteValue(group), .integer(row == nil ? 0 : 1), .integer(at))
    }
    guard let row else { return try insert(id ?? RandomUUID.make(), "INSERT") }
    try insert(derivedID(row, pk, op, rendered), "INSERT OR IGNORE")
    // Two writes of one id cannot be, unless somebody made the bookkeeping again out of an old copy.
    if database.changes == 0 { try insert(RandomUUID.make(), "INSERT") }
  }

  private mutating func derivedID(_ row: JournalRow, _ pk: String, _ op: KizunaSyncOp, _ columns: String) -> String {
    var id = DerivedID(journal: journal, seq: row.seq < 0 ? row.seq + Replica.heldOffset : row.seq, at: row.at)
    for text in [row.table, pk, op.rawValue, columns, row.group ?? ""] { id.add(text) }
    return id.uuid()
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
