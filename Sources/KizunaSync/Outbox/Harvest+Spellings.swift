import HostKit

/// Keys that plain SQL spelled otherwise than the server does: the harvest takes the rows of all spellings for one row,
/// and leaves it in the table under the one spelling that travels.
extension Harvest {
  func isSpelledOtherwise(_ row: JournalRow, _ layout: TableLayout, pk: String) -> Bool {
    (!row.new.isEmpty && !layout.isCanonical(row.new, pk)) || (!row.old.isEmpty && !layout.isCanonical(row.old, pk))
  }

  /// What a clean row was before the change: the row that changes, or beside an insert the one that stands there under its
  /// own spelling.
  mutating func rowBefore(_ row: JournalRow, _ layout: TableLayout, _ id: Replica.RowID) throws -> RowMap? {
    if row.op != "i" { return try exactRow(row.old, layout, pk: id.pk) }
    let canonical = layout.keyCells(id.pk)
    if layout.key(of: row.new) == canonical { return nil }
    if ahead[row.table] == nil { ahead[row.table] = try JournalAhead(replica, layout, from: row.seq) }
    switch ahead[row.table]?.first[id] {
    case .comes: return nil
    case .isThere(let seq):
      return try load("seq = ?", .integer(seq)).first.map { try exactRow($0.old, layout, pk: id.pk) }
    case nil:
      guard let cells = try replica.cells(layout, pk: id.pk), layout.key(of: cells) == canonical else { return nil }
      return try exactRow(cells, layout, pk: id.pk)
    }
  }

  mutating func takeSpelled(
    _ row: JournalRow, _ layout: TableLayout, _ id: Replica.RowID, isClean: Bool
  ) throws {
    touched[id] = true
    let shown = try visible(id)
    var rows = spelled[id] ?? SpelledRows()
    if spelled[id] == nil, let shown {
      rows.put(row.op == "i" ? layout.keyCells(id.pk) : layout.key(of: row.old), shown)
    }
    defer { spelled[id] = rows }
    switch row.op {
    case "d":
      guard let left = rows.remove(layout.key(of: row.old)) else {
        return try takeDelete(row, pk: id.pk, isClean: isClean)
      }
      // The row that is left says all there is.
      let cleared = (shown ?? [:]).filter { left[$0.key] == nil && !layout.isKey($0.key) }.mapValues { _ in
        JSONValue.null
      }
      try enqueueDifference(row, id, from: shown, to: left.merging(cleared) { cell, _ in cell })
    case "i":
      if rows.isEmpty {
        try takeInsert(row, layout, pk: id.pk, isClean: isClean)
      } else {
        // The server merges an insert of a key it has.
        try enqueueDifference(row, id, from: shown, to: values(row.new, layout) { !row.new[$0].isNull })
      }
      rows.put(layout.key(of: row.new), values(row.new, layout) { _ in true })
    default:
      try takeUpdate(row, layout, id)
      rows.put(layout.key(of: row.new), was: layout.key(of: row.old), values(row.new, layout) { _ in true })
    }
  }

  private func visible(_ id: Replica.RowID) throws -> RowMap? {
    guard let image = try replica.image(id.table, pk: id.pk) else { return nil }
    return Overlay.visible(image: image, entries: try replica.entries(id.table, pk: id.pk))
  }

  private mutating func enqueueDifference(
    _ row: JournalRow, _ id: Replica.RowID, from shown: RowMap?, to wanted: RowMap
  ) throws {
    guard let shown else {
      return try enqueue(row, pk: id.pk, op: .insert, columns: wanted.filter { !$0.value.isNull })
    }
    let layout = try replica.layout(id.table)
    let mask = wanted.filter { $0.value != shown[$0.key] ?? .null && !layout.isKey($0.key) }
    if !mask.isEmpty { try enqueue(row, pk: id.pk, op: .update, columns: mask) }
  }

  /// Leaves one row in the table, under the spelling that travels. Its cells are settled afterwards.
  func respell(_ rows: SpelledRows, _ id: Replica.RowID) throws {
    let layout = try replica.layout(id.table)
    let canonical = layout.keyCells(id.pk)
    for key in rows.keys where key != canonical {
      try replica.applying {
        if try !moveKey(layout, from: key, to: canonical) {
          try keepLocalCells(layout, from: key, to: canonical)
          try replica.changeIfAllowed(layout, layout.deleteRow, key)
        }
      }
    }
  }

  /// - Returns: false when a row stands there already, or something in the database is against it.
  private func moveKey(_ layout: TableLayout, from key: [SQLiteValue], to canonical: [SQLiteValue]) throws -> Bool {
    try replica.changeIfAllowed(layout, layout.moveKey, canonical + key) && database.changes > 0
  }

  /// What never travels is not settled from the image, so it is carried over here.
  private func keepLocalCells(_ layout: TableLayout, from key: [SQLiteValue], to canonical: [SQLiteValue]) throws {
    for column in layout.columns where column.isLocalOnly && !column.isKey {
      let name = SQL.name(column.name)
      try replica.changeIfAllowed(
        layout,
        "UPDATE \(layout.quoted) SET \(name) = coalesce((SELECT \(name) FROM \(layout.quoted) WHERE \(layout.whereKey)), "
          + "\(name)) WHERE \(layout.whereKey)", key + canonical)
    }
  }
}
