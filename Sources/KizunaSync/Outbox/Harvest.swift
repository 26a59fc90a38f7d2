import HostKit

/// T0: turns the capture journal into outbox entries.
///
/// Entries are minted and rendered here, once. Entries that were captured, belong to no group and were never sent may
/// collapse: a delete after an unsent insert leaves nothing, an insert after an unsent delete becomes an update of the
/// difference.
struct Harvest {
  let replica: Replica
  var database: Database { replica.database }
  /// The library write of this transaction: the first journal row of its key becomes its entry, whatever that row says.
  var pending: PendingWrite?
  /// Touched rows in the order of their first change. True when the visible row must be made again.
  var touched: [Replica.RowID: Bool] = [:]
  var order: [Replica.RowID] = []
  /// Keys that were spelled otherwise than the server does, with the rows they have.
  var spelled: [Replica.RowID: SpelledRows] = [:]
  /// By table: what the rest of the journal says of keys that are spelled in several ways.
  var ahead: [String: JournalAhead] = [:]
  var unsendable = Unsendable()
  /// Rows whose owner column was filled in their entry and is still to be filled in the table.
  private var filled: Set<Replica.RowID> = []
  /// Rows that one insert made and nothing else touched, with their absent columns: what a bulk load leaves. Their visible
  /// row is known without looking.
  private var fresh: [Replica.RowID: [String]] = [:]
  var clock: HybridClock?
  /// Where the group of the rows at hand began.
  private lazy var mark = GroupMark((try? database.meta(.groupMark))?.text)
  /// Names the journal among those of all files.
  lazy var journal = (try? database.meta(.journal))?.text ?? ""
  private lazy var owner = try? replica.database.meta(.owner).text

  init(_ replica: Replica, pending: PendingWrite?) {
    self.replica = replica
    self.pending = pending
  }

  struct JournalRow {
    var seq: Int64
    var table: String
    var op: String
    var group: String?
    var at: Int64
    /// Empty in a delete.
    var new: [SQLiteValue]
    /// Empty in an insert.
    var old: [SQLiteValue]

    /// What an update is to one of the two rows it is about.
    func part(_ op: String) -> JournalRow {
      JournalRow(
        seq: seq, table: table, op: op, group: group, at: at, new: op == "d" ? [] : new, old: op == "i" ? [] : old)
    }
  }

  private static let batch = 500

  /// - Parameter limit: stop after about so many journal rows; the rest is for the next call.
  mutating func run(limit: Int? = nil) throws {
    let isForeign = pending == nil
    try replica.repairJournal()
    var last = try database.meta(.harvested).integer ?? 0
    var count = try takeHeld()
    var hasHeld = count > 0
    while true {
      let loaded = try load(after: last)
      let end = JournalOrder.end(loaded, wanted: Self.batch, place: place(of:))
      let rows = try loaded[..<end].map { try inItsGroup($0) }
      for row in JournalOrder.sorted(rows, place: place(of:)) {
        if row.table.isEmpty { continue }
        if replica.settings.tables[row.table] == nil {
          try replica.hold(row)
          hasHeld = true
        } else {
          try take(row)
        }
      }
      if let newest = rows.last { last = newest.seq }
      count += rows.count
      if rows.count < Self.batch { break }
      if let limit, count >= limit, try mayStop(after: last, count) { break }
    }
    if let pending { try append(pending) }
    try finish()
    if count > 0 {
      if isForeign { replica.foreignRows += count }
      try database.setMeta(.harvested, .integer(last))
      // The newest row stays: its number must not be used again.
      try database.run("DELETE FROM _kizunasync_capture WHERE seq >= 0 AND seq < ?", .integer(last))
      try database.run("DELETE FROM _kizunasync_displaced WHERE tbl IS NOT NULL")
    }
    if let clock { try database.setMeta(.hlc, .text(clock.state)) }
    if hasHeld { try replica.noteHeldWrites() }
  }

  /// Making a row again while the journal still holds changes of it would undo those: then go on to the end.
  private func mayStop(after last: Int64, _ count: Int) throws -> Bool {
    guard unsendable.isEmpty else { return false }
    let again = Set(touched.lazy.filter(\.value).map(\.key))
    if again.isEmpty { return true }
    // Looking at the rest each time must not become what takes longest.
    let newest = try database.value("SELECT max(seq) FROM _kizunasync_capture")?.integer ?? 0
    guard newest - last <= 10 * Int64(count) else { return false }
    for table in Set(again.map(\.table)) {
      let layout = try replica.layout(table)
      var isChanged = false
      try JournalAhead.forEachKey(replica, layout, from: last + 1) { _, _, key in
        guard !isChanged, let pk = layout.pk(ofKey: key) else { return }
        isChanged = again.contains(Replica.RowID(table: table, pk: pk))
      }
      if isChanged { return false }
    }
    return true
  }

  /// Takes the rows first that were held while their tables were not configured: they are older than all others of these.
  /// - Returns: how many.
  private mutating func takeHeld() throws -> Int {
    guard try replica.isHeldDue() else { return 0 }
    var last = Int64.min
    var count = 0
    while true {
      let rows = try load("seq > ? AND seq < 0 ORDER BY seq LIMIT \(Self.batch)", .integer(last))
      for row in JournalOrder.sorted(rows, place: place(of:)) where replica.layouts[row.table] != nil {
        try take(row)
        count += 1
      }
      guard let newest = rows.last, rows.count == Self.batch else { break }
      last = newest.seq
    }
    for table in replica.layouts.keys {
      try database.run("DELETE FROM _kizunasync_capture WHERE seq < 0 AND tbl = ?", .text(table))
    }
    return count
  }

  /// The row under its group's name and place. The library names its groups so that each is another already.
  private mutating func inItsGroup(_ row: JournalRow) throws -> JournalRow {
    var row = row
    if row.table.isEmpty, row.op == GroupMark.op, let name = row.group, pending == nil {
      let mark = GroupMark(seq: row.seq, name: name)
      self.mark = mark
      try database.setMeta(.groupMark, .text(mark.text))
    } else if let name = row.group, let mark, mark.name == name {
      row.group = mark.group
    }
    return row
  }

  private func load(after seq: Int64) throws -> [JournalRow] {
    try load("seq > ? ORDER BY seq LIMIT \(Self.batch + JournalOrder.reach)", .integer(seq))
  }

  private func place(of row: JournalRow) -> JournalOrder.Place? {
    guard row.op != "m", let layout = replica.layouts[row.table] else { return nil }
    return JournalOrder.Place(table: row.table, key: layout.key(of: row.op == "d" ? row.old : row.new))
  }

  func load(_ condition: String, _ argument: SQLiteValue) throws -> [JournalRow] {
    let width = replica.captureWidth
    let slots = (0..<width).map { ", n\($0)" }.joined() + (0..<width).map { ", o\($0)" }.joined()
    let sql = "SELECT seq, tbl, op, grp, at\(slots) FROM _kizunasync_capture WHERE \(condition)"
    return try database.map(sql, [argument]) { row in
      let columns = replica.layouts[row.string(1)]?.columns ?? []
      let op = row.string(2)
      return JournalRow(
        seq: row.int64(0), table: row.string(1), op: op, group: row.optionalString(3),
        at: JournalTime.milliseconds(row.value(4)),
        new: op == "d" ? [] : columns.map { row.value(Int32(5 + $0.slot)) },
        old: op == "i" ? [] : columns.map { row.value(Int32(5 + width + $0.slot)) })
    }
  }

  // MARK: One journal row

  private mutating func take(_ row: JournalRow) throws {
    guard let layout = replica.layouts[row.table] else { return }
    let old = row.op == "i" ? nil : layout.pk(of: row.old)
    let new = row.op == "d" ? nil : layout.pk(of: row.new)
    if new == nil, row.op != "d" { noteKey(row, layout) }
    switch (old, new) {
    case (let old?, let new?) where old.utf8.elementsEqual(new.utf8): try take(row, layout, pk: new)
    case (let old?, let new?):
      // Another key is another row to the server.
      try take(row.part("d"), layout, pk: old)
      try take(row.part("i"), layout, pk: new)
    case (let old?, nil):
      if row.op == "d" { try take(row, layout, pk: old) } else { try keep(row.part("d"), layout, pk: old) }
    case (nil, let new?): try take(row.part("i"), layout, pk: new)
    case (nil, nil): break
    }
  }

  private mutating func take(_ journalled: JournalRow, _ layout: TableLayout, pk: String) throws {
    var row = journalled
    let id = Replica.RowID(table: row.table, pk: pk)
    let isFirst = touched[id] == nil
    fresh[id] = nil
    touch(id)
    noteCells(row, layout, id)
    let isSpelled = spelled[id] != nil || isSpelledOtherwise(row, layout, pk: pk)
    let isPending = pending.map { $0.write.table == row.table && $0.pk == pk } ?? false
    let image = try replica.image(row.table, pk: pk)
    if image == nil {
      // The first local change of a clean row: what it was is what the server last sent.
      let before =
        isSpelled ? try rowBefore(row, layout, id) : row.op == "i" ? nil : try exactRow(row.old, layout, pk: pk)
      try replica.setImage(
        row.table, pk: pk, before, tombSeq: isPending && pending?.write.op == .update ? RowImage.unseen : nil)
    }
    if isPending, let write = pending {
      pending = nil
      return try enqueue(write, group: row.group)
    }
    fillOwner(&row, layout, id)
    if isSpelled { return try takeSpelled(row, layout, id, isClean: image == nil) }
    switch row.op {
    case "d": try takeDelete(row, pk: pk, isClean: image == nil)
    case "i":
      try takeInsert(row, layout, pk: pk, isClean: image == nil)
      if isFirst, image == nil, touched[id] == false { fresh[id] = absentColumns(row.new, layout) }
    default: try takeUpdate(row, layout, id)
    }
  }

  /// An insert that leaves the owner column out means the signed-in user.
  private mutating func fillOwner(_ row: inout JournalRow, _ layout: TableLayout, _ id: Replica.RowID) {
    guard row.op == "i" || row.op == "r", let column = layout.ownerColumn, let position = layout.positions[column],
      !layout.columns[position].isKey, row.new[position].isNull, let owner
    else { return }
    row.new[position] = .text(owner)
    filled.insert(id)
  }

  mutating func takeUpdate(_ row: JournalRow, _ layout: TableLayout, _ id: Replica.RowID) throws {
    let mask = values(row.new, layout) { row.new[$0] != row.old[$0] }
    if mask.isEmpty { return }
    try enqueue(row, pk: id.pk, op: .update, columns: mask)
    // An owner that was taken away on purpose after it was filled must not be filled again.
    if let column = layout.ownerColumn, mask[column] == .null { touched[id] = true }
  }

  mutating func takeDelete(_ row: JournalRow, pk: String, isClean: Bool) throws {
    let entries = isClean ? [] : try replica.entries(row.table, pk: pk)
    if row.group == nil, row.seq > replica.sentPerhapsThrough ?? -1, entries.first?.op == .insert,
      entries.allSatisfy(\.isLoose),
      try replica.image(row.table, pk: pk)?.row == nil
    {
      return try database.run(
        "DELETE FROM _kizunasync_outbox WHERE tbl = ? AND pk = ?", .text(row.table), .text(pk))
    }
    try enqueue(row, pk: pk, op: .delete, columns: [:])
  }

  mutating func takeInsert(_ row: JournalRow, _ layout: TableLayout, pk: String, isClean: Bool) throws {
    var entries = isClean ? [] : try replica.entries(row.table, pk: pk)
    if row.group == nil, let last = entries.last, last.op == .delete, last.isLoose {
      try replica.removeEntry(last)
      entries.removeLast()
      if let image = try replica.image(row.table, pk: pk),
        let base = Overlay.visible(image: image, entries: entries)
      {
        let mask = values(row.new, layout) { _ in true }.filter { $0.value != base[$0.key] ?? .null }
        if !mask.isEmpty { try enqueue(row, pk: pk, op: .update, columns: mask) }
        return
      }
    }
    var columns = values(row.new, layout) { !row.new[$0].isNull }
    if let column = layout.ownerColumn, layout.positions[column] == nil, let owner {
      // An app's table may do without the column; the server may not.
      columns[column] = .string(owner)
    }
    try enqueue(row, pk: pk, op: .insert, columns: columns)
  }

  /// The decoded cells that `choose`, by position, of the columns that travel. Key columns stay in the key.
  func values(_ cells: [SQLiteValue], _ layout: TableLayout, _ choose: (Int) -> Bool) -> RowMap {
    var row: RowMap = [:]
    for (position, column) in layout.columns.enumerated()
    where !column.isKey && !column.isLocalOnly && choose(position) {
      // What JSON cannot carry is judged at the end.
      if case .malformed = cells[position] { continue }
      row[column.name] = CellCodec.decode(cells[position], kind: column.kind)
    }
    return row
  }

  /// NULL in an insert by SQL means left out.
  private func absentColumns(_ cells: [SQLiteValue], _ layout: TableLayout) -> [String] {
    zip(layout.columns, cells).compactMap { column, cell in
      cell.isNull && !column.isLate && !column.isKey && !column.isLocalOnly ? column.name : nil
    }
  }

  /// What the server has of a row that stood in the table with these cells.
  func exactRow(_ cells: [SQLiteValue], _ layout: TableLayout, pk: String) throws -> RowMap {
    travelling(try replica.exactRow(layout, pk: pk, cells: cells), layout)
  }

  func travelling(_ row: RowMap, _ layout: TableLayout) -> RowMap {
    row.filter { name, _ in layout[name].map { !$0.isLocalOnly || $0.isKey } ?? true }
  }

  // MARK: The end

  mutating func touch(_ id: Replica.RowID) {
    if touched.updateValue(touched[id] ?? false, forKey: id) == nil { order.append(id) }
  }

  private mutating func finish() throws {
    for id in order { if let rows = spelled[id] { try respell(rows, id) } }
    try refuseUnsendable()
    if order.isEmpty { return }
    // Once for all rows: silencing the triggers and waking them costs several statements.
    try replica.applying {
      for id in order { try settle(id) }
      try replica.retryParked()
    }
  }

  /// Brings the visible row in line with what is queued for it.
  private mutating func settle(_ id: Replica.RowID) throws {
    if touched[id] == false, let absent = fresh[id] {
      if filled.contains(id), let column = try replica.layout(id.table).ownerColumn, let owner {
        try showOwner([column: .string(owner)], id)
      }
      try replica.noteAbsent(id.table, pk: id.pk, columns: absent)
      return
    }
    let entries = try replica.entries(id.table, pk: id.pk)
    guard let image = try replica.image(id.table, pk: id.pk) else { return }
    if touched[id] == true {
      try replica.show(id.table, pk: id.pk, row: Overlay.visible(image: image, entries: entries), firm: false)
      if entries.isEmpty { try replica.removeImage(id.table, pk: id.pk) }
    } else if entries.isEmpty {
      if filled.contains(id) { try showOwner(image.row, id) }
      try replica.noteAbsent(id.table, pk: id.pk, row: image.row)
      try replica.removeImage(id.table, pk: id.pk)
    } else {
      let visible = Overlay.visible(image: image, entries: entries)
      if filled.contains(id) { try showOwner(visible, id) }
      try replica.noteAbsent(id.table, pk: id.pk, row: visible)
    }
  }
}

extension Harvest {
  /// Only the one cell: the journal may hold later changes of the row. While applying.
  private func showOwner(_ visible: RowMap?, _ id: Replica.RowID) throws {
    let layout = try replica.layout(id.table)
    guard let column = layout.ownerColumn, let value = visible?[column], !value.isNull else { return }
    let cell = CellCodec.encode(value, kind: layout[column]?.kind)
    let name = SQL.name(column)
    try replica.changeIfAllowed(
      layout, "UPDATE \(layout.quoted) SET \(name) = ? WHERE \(name) IS NULL AND \(layout.whereKey)",
      [cell] + layout.keyCells(id.pk))
  }
}
