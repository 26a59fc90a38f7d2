import HostKit

/// The outbox, the images under it, and how both make the visible row.
extension Replica {
  struct RowID: Hashable {
    var table: String
    var pk: String

    static func == (left: RowID, right: RowID) -> Bool {
      // Keys are told apart by their bytes, as the server does.
      left.table == right.table && left.pk.utf8.elementsEqual(right.pk.utf8)
    }
  }

  // MARK: Entries

  /// The entries of one row in order.
  func entries(_ table: String, pk: String) throws -> [OutboxEntry] {
    try database.map(
      OutboxEntry.selection + " WHERE tbl = ? AND pk = ? ORDER BY seq", [.text(table), .text(pk)], OutboxEntry.init)
  }

  func hasEntries(_ table: String, pk: String) throws -> Bool {
    try database.exists("SELECT 1 FROM _kizunasync_outbox WHERE tbl = ? AND pk = ?", .text(table), .text(pk))
  }

  /// Writes the server has not decided yet, without those that are held.
  func outboxDepth() throws -> Int {
    let depth = Int(try database.value("SELECT count(*) FROM _kizunasync_outbox WHERE state < 2")?.integer ?? 0)
    if depth == 0 { return 0 }
    var held = try heldEntries()
    if held.isEmpty { return depth }
    var count = 0
    try database.forEachRow("SELECT tbl, pk, grp FROM _kizunasync_outbox WHERE state < 2 ORDER BY seq") { row in
      if !held.holds(RowID(table: row.string(0), pk: row.string(1)), group: row.optionalString(2)) { count += 1 }
    }
    return count
  }

  func removeEntry(_ entry: OutboxEntry) throws {
    try database.run("DELETE FROM _kizunasync_outbox WHERE seq = ?", .integer(entry.seq))
  }

  /// The entry and the acknowledged ones of its row before it: a row of the server that answers it shows them already,
  /// and a transform must not count twice.
  func removeEntryAndShown(_ entry: OutboxEntry) throws {
    try removeEntry(entry)
    try database.run(
      "DELETE FROM _kizunasync_outbox WHERE tbl = ? AND pk = ? AND state = 2 AND seq < ?", .text(entry.table),
      .text(entry.pk), .integer(entry.seq))
  }

  // MARK: Images

  func image(_ table: String, pk: String) throws -> RowImage? {
    try database.first(
      "SELECT row, tomb_seq FROM _kizunasync_image WHERE tbl = ? AND pk = ?", [.text(table), .text(pk)]
    ) { row in
      let seq = row.isNull(1) ? nil : row.int64(1)
      guard !row.isNull(0) else { return RowImage(tombSeq: seq) }
      return RowImage(
        row: row.optionalString(0).flatMap { try? JSONValue(parsing: $0) }?.objectValue, pulledAfter: seq)
    }
  }

  func setImage(
    _ table: String, pk: String, _ row: RowMap?, tombSeq: Int64? = nil, pulledAfter: Int64? = nil
  ) throws {
    try database.run(
      "INSERT OR REPLACE INTO _kizunasync_image VALUES (?, ?, ?, ?)", .text(table), .text(pk),
      SQLiteValue(row.map { JSONWriter.text(.object($0)) }), SQLiteValue(row == nil ? tombSeq : pulledAfter))
  }

  func removeImage(_ table: String, pk: String) throws {
    try database.run("DELETE FROM _kizunasync_image WHERE tbl = ? AND pk = ?", .text(table), .text(pk))
  }

  /// A row, or its absence, as the server sent it for a row with entries. It teaches columns and kinds even where queued
  /// writes hide it.
  /// - Parameter isPulled: a transfer brought it, and not a verdict.
  func setImageFromServer(_ table: String, pk: String, _ row: RowMap?, isPulled: Bool) throws {
    guard let row else {
      let newest = try database.value(
        "SELECT max(seq) FROM _kizunasync_outbox WHERE tbl = ? AND pk = ?", .text(table), .text(pk))?.integer
      return try setImage(table, pk: pk, nil, tombSeq: newest ?? 0)
    }
    let travelling = try learned(row, of: table)
    let sent =
      isPulled
      ? try database.value(
        "SELECT max(seq) FROM _kizunasync_outbox WHERE tbl = ? AND pk = ? AND state > 0", .text(table), .text(pk))?
        .integer
      : try image(table, pk: pk)?.pulledAfter
    try setImage(table, pk: pk, travelling, pulledAfter: sent)
  }

  /// - Returns: a row of the server without local-only columns, of which the table has all the others from now on.
  func learned(_ row: RowMap, of table: String) throws -> RowMap {
    let travelling = row.filter { !settings.localOnlyColumns.contains($0.key) }
    if setAside[table] == nil {
      try ensureForServer(travelling.keys, of: table)
      try learn(travelling, table: table, firm: true)
    }
    return travelling
  }

  /// Makes the table show what image and entries say; without entries the image has done its work.
  func settle(_ table: String, pk: String) throws {
    guard layouts[table] != nil, let image = try image(table, pk: pk) else { return }
    let entries = try entries(table, pk: pk)
    if entries.isEmpty {
      try show(table, pk: pk, row: image.row, firm: true)
      try removeImage(table, pk: pk)
    } else {
      try show(table, pk: pk, row: Overlay.visible(image: image, entries: entries), firm: false)
    }
  }
}
