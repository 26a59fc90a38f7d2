import HostKit

/// Text that is not UTF-8, which SQLite keeps and no JSON can carry.
///
/// The server would refuse it, so the harvest does: the cell, or the row under such a key, is put back as after a refusal,
/// and the bytes go to the journal of refused writes, in hexadecimal. The journal of changes is read to its end before
/// that, because a later statement may have corrected or deleted what an earlier one wrote.
struct Unsendable {
  struct Key: Hashable {
    var table: String
    var cells: [SQLiteValue]
  }

  struct Cells {
    var columns: Set<String> = []
    var groups: Set<String> = []
  }

  /// Rows under keys that cannot be spelled, with the all-or-nothing groups that wrote them.
  var keys: [Key: Set<String>] = [:]
  var cells: [Replica.RowID: Cells] = [:]

  var isEmpty: Bool { keys.isEmpty && cells.isEmpty }
}

extension Harvest {
  mutating func noteKey(_ row: JournalRow, _ layout: TableLayout) {
    let key = Unsendable.Key(table: row.table, cells: layout.key(of: row.new))
    unsendable.keys[key, default: []].formUnion(row.group.map { [$0] } ?? [])
  }

  mutating func noteCells(_ row: JournalRow, _ layout: TableLayout, _ id: Replica.RowID) {
    for (position, cell) in row.new.enumerated() {
      guard case .malformed = cell else { continue }
      let column = layout.columns[position]
      if column.isKey || column.isLocalOnly { continue }
      touched[id] = true
      unsendable.cells[id, default: Unsendable.Cells()].columns.insert(column.name)
      if let group = row.group { unsendable.cells[id]?.groups.insert(group) }
    }
  }

  /// A row whose new key cannot be spelled stays where it was.
  mutating func keep(_ row: JournalRow, _ layout: TableLayout, pk: String) throws {
    let id = Replica.RowID(table: row.table, pk: pk)
    touch(id)
    touched[id] = true
    if try replica.image(row.table, pk: pk) == nil {
      try replica.setImage(row.table, pk: pk, exactRow(row.old, layout, pk: pk))
    }
    _ = spelled[id]?.remove(layout.key(of: row.old))
  }

  // MARK: The end

  /// A refused write as the journal keeps it.
  private struct Refusal {
    var entry: OutboxEntry
    var groups: Set<String>
  }

  mutating func refuseUnsendable() throws {
    if unsendable.isEmpty { return }
    let refusals = try refusedKeys() + refusedCells()
    let groups = refusals.reduce(into: Set<String>()) { $0.formUnion($1.groups) }
    for refusal in refusals where refusal.groups.isEmpty {
      try journal(refusal.entry, members: [refusal.entry], kind: "REJECTED")
      replica.refusals.append(.mutationRejected(mutationId: refusal.entry.mutationID, reason: Self.reason))
    }
    for group in groups.sorted() {
      try abort(group, refusals.filter { $0.groups.contains(group) }.map(\.entry))
    }
    for table in Set(refusals.map(\.entry.table)).sorted() {
      replica.log.warning(
        "store.text_refused",
        [
          "table": .string(table), "writes": .int(refusals.count { $0.entry.table == table }),
          "reason": "text that is not UTF-8 cannot be sent; see the refused writes for its bytes",
        ])
    }
  }

  private static let reason = "CONSTRAINT"

  private func journal(_ entry: OutboxEntry, members: [OutboxEntry], kind: String) throws {
    try replica.journalRejection(of: entry, members: members, kind: kind, reason: Self.reason, serverRow: nil)
  }

  /// Takes the rows away whose keys cannot be spelled.
  private func refusedKeys() throws -> [Refusal] {
    try unsendable.keys.compactMap { key, groups in
      let layout = try replica.layout(key.table)
      guard let cells = try database.first(layout.selectRow, key.cells, { $0.row() }) else { return nil }
      _ = try replica.applying { try replica.changeIfAllowed(layout, layout.deleteRow, key.cells) }
      let parts = key.cells.map { RowKey.part($0) ?? CellCodec.decode($0, kind: nil).stringValue ?? "" }
      let columns = layout.syncedPositions.filter { !layout.columns[$0].isKey && !cells[$0].isNull }
      return refusal(key.table, RowKey.spell(parts), .insert, layout, cells, columns, groups)
    }.sorted { JSONWriter.bytewise($0.entry.pk, $1.entry.pk) }
  }

  /// The cells are put back when their rows are shown again.
  private func refusedCells() throws -> [Refusal] {
    try order.compactMap { id in
      guard let noted = unsendable.cells[id] else { return nil }
      let layout = try replica.layout(id.table)
      guard let cells = try replica.cells(layout, pk: id.pk) else { return nil }
      let columns = layout.columns.indices.filter { position in
        guard case .malformed = cells[position] else { return false }
        return noted.columns.contains(layout.columns[position].name)
      }
      return columns.isEmpty ? nil : refusal(id.table, id.pk, .update, layout, cells, columns, noted.groups)
    }
  }

  private func refusal(
    _ table: String, _ pk: String, _ op: KizunaSyncOp, _ layout: TableLayout, _ cells: [SQLiteValue],
    _ positions: [Int], _ groups: Set<String>
  ) -> Refusal {
    let columns = positions.map { position in
      (layout.columns[position].name, CellCodec.decode(cells[position], kind: layout.columns[position].kind))
    }
    var entry = OutboxEntry(
      seq: 0, mutationID: RandomUUID.make(), table: table, pk: pk, op: op,
      columns: JSONWriter.text(.object(Dictionary(uniqueKeysWithValues: columns))))
    entry.malformed = zip(layout.columns, cells).compactMap { column, cell in
      if case .malformed = cell, column.isKey || positions.contains(where: { layout.columns[$0].name == column.name }) {
        column.name
      } else {
        nil
      }
    }
    return Refusal(entry: entry, groups: groups)
  }

  /// All or nothing: what else the group wrote is put back too, unless it was sent already.
  private mutating func abort(_ group: String, _ refused: [OutboxEntry]) throws {
    guard let offender = refused.first else { return }
    let queued = try database.map(
      OutboxEntry.selection + " WHERE grp = ? AND state = 0 ORDER BY seq", [.text(group)], OutboxEntry.init)
    try journal(offender, members: queued + refused, kind: "BATCH_ABORTED")
    for entry in queued {
      try replica.removeEntry(entry)
      let id = Replica.RowID(table: entry.table, pk: entry.pk)
      touch(id)
      touched[id] = true
    }
    replica.refusals.append(.batchAborted(offenderMutationId: offender.mutationID, reason: Self.reason))
  }
}
