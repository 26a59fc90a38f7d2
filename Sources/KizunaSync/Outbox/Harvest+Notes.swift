import HostKit

/// Rows that were displaced, which no trigger sees: see `NotedRows`.
extension Harvest {
  /// A note that the journal has not come to yet.
  struct Note {
    var table: String
    var row: NotedRows.Row
  }

  /// Loads the notes made before the journal row `seq`. Those of tables that are not configured are held like their rows.
  mutating func loadNotes(before seq: Int64) throws {
    var held: [Int64] = []
    // Newer notes have higher row ids and were made after later journal rows.
    try forEachNote("rowid > ? AND base_seq >= 0", .integer(lastNote)) { note in
      guard note.row.base < seq else { return false }
      lastNote = note.row.number
      if replica.settings.tables[note.table] == nil { held.append(note.row.number) } else { notes.append(note) }
      return true
    }
    for number in held {
      try database.run(
        "UPDATE _kizunasync_displaced SET base_seq = base_seq - \(Replica.heldOffset) WHERE rowid = ?", .integer(number)
      )
    }
  }

  /// Loads what was noted of tables while they were not configured.
  mutating func loadHeldNotes() throws {
    try forEachNote("rowid > ? AND base_seq < 0", .integer(0)) { note in
      if replica.layouts[note.table] != nil { notes.append(note) }
      return true
    }
  }

  private func forEachNote(_ condition: String, _ argument: SQLiteValue, _ body: (Note) throws -> Bool) throws {
    let slots = (0..<replica.captureWidth).map { ", c\($0)" }.joined()
    try database.forEachHead(
      "SELECT rowid, base_seq, tbl\(slots) FROM _kizunasync_displaced WHERE \(condition) AND tbl IS NOT NULL "
        + "ORDER BY rowid", [argument]
    ) { row in
      let table = row.string(2)
      let layout = replica.layouts[table]
      let cells = layout.map { $0.columns.map { row.value(Int32(3 + $0.slot)) } } ?? []
      return try body(
        Note(
          table: table,
          row: NotedRows.Row(number: row.int64(0), base: row.int64(1), key: layout?.key(of: cells) ?? [], cells: cells))
      )
    }
  }

  /// Takes a journal row with the rows it displaced, which are deleted before it.
  mutating func takeWithDisplaced(_ journalled: JournalRow) throws {
    var row = journalled
    if !notes.isEmpty || !noted.isEmpty, let layout = replica.layouts[row.table] {
      while let note = notes.first, note.row.base < row.seq {
        noted[note.table, default: NotedRows()].note(note.row)
        notes.removeFirst()
      }
      let outcome = try outcome(of: row, layout)
      for displaced in outcome.displaced {
        var deletion = row
        (deletion.op, deletion.new, deletion.old) = ("d", [], displaced.cells)
        try take(deletion)
      }
      if let replaced = outcome.replaced { (row.op, row.old) = ("r", replaced.cells) }
    }
    try take(row)
  }

  private mutating func outcome(of row: JournalRow, _ layout: TableLayout) throws -> NotedRows.Outcome {
    guard var rows = noted[row.table], !rows.isEmpty else { return NotedRows.Outcome() }
    defer { noted[row.table] = rows.isEmpty ? nil : rows }
    if row.op == "d" {
      rows.delete(layout.key(of: row.old))
      return NotedRows.Outcome()
    }
    // A table that is set aside may have an index that nobody can follow.
    let sets = uniqueSets[row.table] ?? (try? replica.uniqueSets(row.table)) ?? []
    uniqueSets[row.table] = sets
    return try rows.write(
      layout.key(of: row.new), was: row.op == "i" ? nil : layout.key(of: row.old), cells: row.new
    ) { noted in
      var isInDoubt = sets.isEmpty
      for set in sets {
        switch shares(set, layout, noted.cells, row.new) {
        case false?: continue
        case true? where !set.isPartial: return true
        default: isInDoubt = true
        }
      }
      return try isInDoubt && !isStillThere(noted, layout, after: row)
    }
  }

  /// - Returns: nil if that cannot be told.
  private func shares(
    _ set: CaptureTriggers.UniqueSet, _ layout: TableLayout, _ left: [SQLiteValue], _ right: [SQLiteValue]
  ) -> Bool? {
    var isCertain = true
    for member in set.members {
      // A generated column is not journalled.
      switch layout.positions[member.column].flatMap({
        isEqual(left[$0], right[$0], collation: member.collation)
      }) {
      case false?: return false
      case nil: isCertain = false
      case true?: break
      }
    }
    return isCertain ? true : nil
  }

  /// - Returns: nil for a collation that is not known here.
  private func isEqual(_ left: SQLiteValue, _ right: SQLiteValue, collation: String) -> Bool? {
    switch (left, right) {
    case (.null, _), (_, .null): return false
    case (.integer(let whole), .real(let number)), (.real(let number), .integer(let whole)):
      return Int64(exactly: number) == whole
    case (.text, .text) where collation.uppercased() != "BINARY" && left != right:
      let equal = try? database.value("SELECT ? = ? COLLATE \(SQL.name(collation))", left, right)
      return equal.map { $0 == .integer(1) }
    case (.malformed, .text), (.text, .malformed), (.malformed, .malformed):
      return left == right ? true : collation.uppercased() == "BINARY" ? false : nil
    default: return left == right
    }
  }

  /// Whether a row of which the cells do not tell was there after a journal row.
  private mutating func isStillThere(
    _ noted: NotedRows.Row, _ layout: TableLayout, after row: JournalRow
  ) throws -> Bool {
    let known = sightings[row.table]
    if known?.keys.contains(noted.key) != true {
      sightings[row.table] = try JournalSightings(
        replica, layout, from: row.seq, of: (known?.keys ?? []).union([noted.key]))
    }
    return try sightings[row.table]?.isThere(noted.key, after: row.seq)
      ?? database.first("SELECT 1 FROM \(layout.quoted) WHERE \(layout.whereKey)", noted.key) { _ in true } ?? false
  }

  /// Ends what is known of the rest. Between two runs of one backlog a statement may be half told.
  func forgetNotes(isAtEnd: Bool) throws {
    guard try database.exists("SELECT 1 FROM _kizunasync_displaced LIMIT 1") else { return }
    var kept: [Int64] = []
    if !isAtEnd {
      kept = notes.map(\.row.number) + noted.values.flatMap { $0.rows.map(\.number) }
      for (table, rows) in noted { for row in rows.rows where row.isChanged { try update(row, of: table) } }
    }
    func list(_ values: [JSONValue]) -> SQLiteValue { .text(JSONWriter.text(.array(values))) }
    try database.run(
      "DELETE FROM _kizunasync_displaced WHERE (base_seq >= 0 AND (? OR rowid <= ?) "
        + "OR base_seq < 0 AND tbl IN (SELECT value FROM json_each(?))) AND rowid NOT IN (SELECT value FROM json_each(?))",
      .integer(isAtEnd ? 1 : 0), .integer(lastNote), list(replica.layouts.keys.map(JSONValue.string)),
      list(kept.map { .int(Int($0)) }))
  }

  private func update(_ row: NotedRows.Row, of table: String) throws {
    let slots = try replica.layout(table).columns.map { "c\($0.slot) = ?" }.joined(separator: ", ")
    try database.run("UPDATE _kizunasync_displaced SET \(slots) WHERE rowid = ?", row.cells + [.integer(row.number)])
  }
}
