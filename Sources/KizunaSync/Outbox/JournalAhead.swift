/// What the rest of the capture journal says first of the rows that stand under their own spelling, for the keys of one
/// table that are spelled otherwise somewhere in it.
///
/// An insert of `7` beside a `'7'` does not say whether that row was there before the journal began: the first change that
/// row sees does, and without one the table itself.
struct JournalAhead {
  enum First {
    /// The row comes only here.
    case comes
    /// It was there, and the journal row of this number says what it was.
    case isThere(seq: Int64)
  }

  private(set) var first: [Replica.RowID: First] = [:]

  init(_ replica: Replica, _ layout: TableLayout, from seq: Int64) throws {
    func id(_ pk: String) -> Replica.RowID { Replica.RowID(table: layout.name, pk: pk) }
    var keys: Set<Replica.RowID> = []
    try Self.forEachKey(replica, layout, from: seq) { _, _, key in
      if let pk = layout.pk(ofKey: key), layout.keyCells(pk) != key { keys.insert(id(pk)) }
    }
    var first: [Replica.RowID: First] = [:]
    try Self.forEachKey(replica, layout, from: seq) { seq, isOld, key in
      guard let pk = layout.pk(ofKey: key), keys.contains(id(pk)), first[id(pk)] == nil, layout.keyCells(pk) == key
      else { return }
      first[id(pk)] = isOld ? .isThere(seq: seq) : .comes
    }
    self.first = first
  }

  /// Calls `body` for the keys of each journal row, the old one first.
  static func forEachKey(
    _ replica: Replica, _ layout: TableLayout, from seq: Int64, _ body: (Int64, _ isOld: Bool, [SQLiteValue]) -> Void
  ) throws {
    let slots = layout.keyPositions.map { layout.columns[$0].slot }
    let names = slots.map { "o\($0)" } + slots.map { "n\($0)" }
    try replica.database.forEachRow(
      "SELECT seq, op, \(names.joined(separator: ", ")) FROM _kizunasync_capture WHERE seq >= ? AND tbl = ? "
        + "AND (seq < 0 OR seq > ?) ORDER BY seq",
      [.integer(seq), .text(layout.name), .integer(replica.database.meta(.harvested).integer ?? 0)]
    ) { row in
      let op = row.string(1)
      let cells = Array(row.row().dropFirst(2))
      if op != "i" { body(row.int64(0), true, Array(cells.prefix(slots.count))) }
      if op != "d" { body(row.int64(0), false, Array(cells.suffix(slots.count))) }
    }
  }
}
