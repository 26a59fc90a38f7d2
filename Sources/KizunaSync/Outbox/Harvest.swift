import HostKit

/// T0: turns the capture journal into outbox entries.
///
/// Entries are minted and rendered here, once. Entries that were captured, belong to no group and were never sent may
/// collapse: a delete after an unsent insert leaves nothing, an insert after an unsent delete becomes an update of the
/// difference.
struct Harvest {
  private let replica: Replica
  private var database: Database { replica.database }
  /// The library write of this transaction: the first journal row of its key becomes its entry, whatever that row says.
  private var pending: PendingWrite?
  /// Touched rows in the order of their first change. True when the visible row must be made again.
  private var touched: [Replica.RowID: Bool] = [:]
  private var order: [Replica.RowID] = []
  private var respelled: [(table: String, key: [SQLiteValue])] = []
  /// Rows whose owner column was filled in their entry and is still to be filled in the table.
  private var filled: Set<Replica.RowID> = []
  /// Rows that one insert made and nothing else touched, with their absent columns: what a bulk load leaves. Their visible
  /// row is known without looking.
  private var fresh: [Replica.RowID: [String]] = [:]
  private var clock: HybridClock?
  private lazy var owner = try? replica.database.meta(.owner).text

  init(_ replica: Replica, pending: PendingWrite?) {
    self.replica = replica
    self.pending = pending
  }

  private struct JournalRow {
    var seq: Int64
    var table: String
    var op: String
    var group: String?
    var at: Int64
    var new: [SQLiteValue]
    var old: [SQLiteValue]
  }

  private static let batch = 500

  /// - Parameter limit: stop after about so many journal rows; the rest is for the next call.
  mutating func run(limit: Int? = nil) throws {
    let isForeign = pending == nil
    var last = try database.meta(.harvested).integer ?? 0
    var count = 0
    while true {
      let rows = try load(after: last)
      for row in rows { try take(row) }
      if let newest = rows.last { last = newest.seq }
      count += rows.count
      if rows.count < Self.batch { break }
      // Making a row again while the journal still holds changes of it would undo those: then go on to the end.
      if let limit, count >= limit, !touched.values.contains(true) { break }
    }
    if let pending { try append(pending) }
    try finish()
    if count > 0 {
      if isForeign { replica.foreignRows += count }
      try database.setMeta(.harvested, .integer(last))
      // The newest row stays: its number must not be used again.
      try database.run("DELETE FROM _kizunasync_capture WHERE seq < ?", .integer(last))
      try database.run("DELETE FROM _kizunasync_displaced")
    }
    if let clock { try database.setMeta(.hlc, .text(clock.state)) }
  }

  private func load(after seq: Int64) throws -> [JournalRow] {
    let width = replica.captureWidth
    let slots = (0..<width).map { ", n\($0)" }.joined() + (0..<width).map { ", o\($0)" }.joined()
    let sql =
      "SELECT seq, tbl, op, grp, at\(slots) FROM _kizunasync_capture WHERE seq > ? ORDER BY seq LIMIT \(Self.batch)"
    return try database.map(sql, [.integer(seq)]) { row in
      let columns = replica.layouts[row.string(1)]?.columns ?? []
      let op = row.string(2)
      return JournalRow(
        seq: row.int64(0), table: row.string(1), op: op, group: row.optionalString(3), at: row.int64(4),
        new: op == "d" ? [] : columns.map { row.value(Int32(5 + $0.slot)) },
        old: op == "i" ? [] : columns.map { row.value(Int32(5 + width + $0.slot)) })
    }
  }

  // MARK: One journal row

  private mutating func take(_ journalled: JournalRow) throws {
    var row = journalled
    guard let layout = replica.layouts[row.table] else { return }
    let cells = row.op == "d" ? row.old : row.new
    guard let pk = layout.pk(of: cells) else { return }
    let id = Replica.RowID(table: row.table, pk: pk)
    let isFirst = touched[id] == nil
    fresh[id] = nil
    touch(id)
    if row.op != "d" {
      let raw = layout.keyPositions.map { cells[$0] }
      if raw != layout.keyCells(pk) {
        respelled.append((row.table, raw))
        touched[id] = true
      }
    }
    let isPending = pending.map { $0.write.table == row.table && $0.pk == pk } ?? false
    let image = try replica.image(row.table, pk: pk)
    if image == nil {
      // The first local change of a clean row: what it was is what the server last sent.
      let before = row.op == "i" ? nil : try travelling(replica.exactRow(layout, pk: pk, cells: row.old), layout)
      try replica.setImage(
        row.table, pk: pk, before, tombSeq: isPending && pending?.write.op == .update ? RowImage.unseen : nil)
    }
    if isPending, let write = pending {
      pending = nil
      return try enqueue(write, group: row.group)
    }
    fillOwner(&row, layout, id)
    switch row.op {
    case "u", "r": try takeUpdate(row, layout, id)
    case "d": try takeDelete(row, pk: pk, isClean: image == nil)
    default:
      try takeInsert(row, layout, pk: pk, isClean: image == nil)
      if isFirst, image == nil, touched[id] == false { fresh[id] = absentColumns(row.new, layout) }
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

  private mutating func takeUpdate(_ row: JournalRow, _ layout: TableLayout, _ id: Replica.RowID) throws {
    let mask = values(row.new, layout) { row.new[$0] != row.old[$0] }
    if mask.isEmpty { return }
    try enqueue(row, pk: id.pk, op: .update, columns: mask)
    // An owner that was taken away on purpose after it was filled must not be filled again.
    if let column = layout.ownerColumn, mask[column] == .null { touched[id] = true }
  }

  private mutating func takeDelete(_ row: JournalRow, pk: String, isClean: Bool) throws {
    let entries = isClean ? [] : try replica.entries(row.table, pk: pk)
    if row.group == nil, entries.first?.op == .insert, entries.allSatisfy(\.isLoose),
      try replica.image(row.table, pk: pk)?.row == nil
    {
      return try database.run(
        "DELETE FROM _kizunasync_outbox WHERE tbl = ? AND pk = ?", .text(row.table), .text(pk))
    }
    try enqueue(row, pk: pk, op: .delete, columns: [:])
  }

  private mutating func takeInsert(_ row: JournalRow, _ layout: TableLayout, pk: String, isClean: Bool) throws {
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
  private func values(_ cells: [SQLiteValue], _ layout: TableLayout, _ choose: (Int) -> Bool) -> RowMap {
    var row: RowMap = [:]
    for (position, column) in layout.columns.enumerated()
    where !column.isKey && !column.isLocalOnly && choose(position) {
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

  private func travelling(_ row: RowMap, _ layout: TableLayout) -> RowMap {
    row.filter { name, _ in layout[name].map { !$0.isLocalOnly || $0.isKey } ?? true }
  }

  // MARK: Entries

  private mutating func enqueue(_ row: JournalRow, pk: String, op: KizunaSyncOp, columns: RowMap) throws {
    try insert(
      id: RandomUUID.make(), table: row.table, pk: pk, op: op, columns: columns, hlc: nil, group: row.group, at: row.at,
      captured: true)
  }

  private mutating func enqueue(_ pending: PendingWrite, group: String?) throws {
    let write = pending.write
    try insert(
      id: write.mutationID ?? RandomUUID.make(), table: write.table, pk: pending.pk, op: write.op,
      columns: pending.columns, transforms: write.transforms, precondition: write.precondition, hlc: write.hlc,
      group: group, at: replica.clock.wallMilliseconds, captured: false)
  }

  /// A library write that left no journal row of its own: nothing was there, or nothing to change.
  private mutating func append(_ write: PendingWrite) throws {
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

  // MARK: The end

  private mutating func touch(_ id: Replica.RowID) {
    if touched.updateValue(touched[id] ?? false, forKey: id) == nil { order.append(id) }
  }

  private mutating func finish() throws {
    for row in respelled {
      let layout = try replica.layout(row.table)
      try replica.applying { try database.run(layout.deleteRow, row.key) }
    }
    for id in order {
      if let absent = fresh[id] {
        if filled.contains(id), let column = try replica.layout(id.table).ownerColumn, let owner {
          try showOwner([column: .string(owner)], id)
        }
        try replica.noteAbsent(id.table, pk: id.pk, columns: absent)
        continue
      }
      let entries = try replica.entries(id.table, pk: id.pk)
      guard let image = try replica.image(id.table, pk: id.pk) else { continue }
      if entries.isEmpty {
        if filled.contains(id) { try showOwner(image.row, id) }
        try replica.noteAbsent(id.table, pk: id.pk, row: image.row)
        try replica.removeImage(id.table, pk: id.pk)
      } else if touched[id] == true {
        try replica.applying { try replica.settle(id.table, pk: id.pk) }
      } else {
        let visible = Overlay.visible(image: image, entries: entries)
        if filled.contains(id) { try showOwner(visible, id) }
        try replica.noteAbsent(id.table, pk: id.pk, row: visible)
      }
    }
    if !order.isEmpty { try replica.applying { try replica.retryParked() } }
  }
}

extension Harvest {
  /// Only the one cell: the journal may hold later changes of the row.
  private func showOwner(_ visible: RowMap?, _ id: Replica.RowID) throws {
    let layout = try replica.layout(id.table)
    guard let column = layout.ownerColumn, let value = visible?[column], !value.isNull else { return }
    let cell = CellCodec.encode(value, kind: layout[column]?.kind)
    let name = SQL.name(column)
    try replica.applying {
      try database.run(
        "UPDATE \(layout.quoted) SET \(name) = ? WHERE \(name) IS NULL AND \(layout.whereKey)",
        [cell] + layout.keyCells(id.pk))
    }
  }
}

extension Replica {
  /// Journal rows a transaction of its own takes at most, so that the write lock is never held for long.
  static let harvestBatch = 2000

  /// Whether any process left journal rows that are not in the outbox yet.
  func isHarvestPending() throws -> Bool {
    guard try pendingJournalRows() > 0 else { return false }
    return try database.meta(.adopting).isNull
  }

  /// The distance between the newest journal row and the harvest: an upper limit of the rows that wait.
  func pendingJournalRows() throws -> Int64 {
    let newest = try database.value("SELECT max(seq) FROM _kizunasync_capture")?.integer ?? 0
    return newest - (try database.meta(.harvested).integer ?? 0)
  }

  /// Brings the journal down to what one transaction may take, several short ones if need be.
  func harvestBacklog() throws {
    while try pendingJournalRows() > Self.harvestBatch, try isHarvestPending() {
      try bareTransaction(sync: .normal, foreignKeys: false) {
        var harvest = Harvest(self, pending: nil)
        try harvest.run(limit: Self.harvestBatch)
      }
    }
  }

  /// T0 alone.
  /// - Returns: whether there was anything to harvest.
  @discardableResult
  func harvestNow() throws -> Bool {
    guard try isHarvestPending() else { return false }
    try transaction {}
    return true
  }

  /// T0 inside the current transaction.
  func harvest(attaching pending: PendingWrite? = nil) throws {
    if pending == nil { try removeStrayGroups() }
    guard try pending != nil || isHarvestPending() else { return }
    var harvest = Harvest(self, pending: pending)
    try harvest.run()
  }

  /// A group row that is ever visible committed is its writer's mistake: it would tie everybody's later writes together.
  private func removeStrayGroups() throws {
    guard try database.exists("SELECT 1 FROM _kizunasync_group LIMIT 1") else { return }
    try database.run("DELETE FROM _kizunasync_group")
    log.warning("store.group_left_open")
  }
}
