import HostKit

/// Local changes that no trigger saw, found by comparing a table's rows with what the server sends, and put into the
/// journal as if they had been captured. Used inside the transaction that closes a reread.
///
/// What is missing here, a row or a value, is no change: a table that was replaced by an empty one must not empty the
/// server's.
struct KeptChanges {
  private let replica: Replica
  private let table: String
  private let reread: Rereads.Reread
  private var database: Database { replica.database }
  /// Rows of the page at hand as they were before it was applied.
  private var before: [(pk: String, row: RowMap)] = []
  /// How many changes were kept.
  private(set) var count = 0

  init(_ replica: Replica, table: String, _ reread: Rereads.Reread) throws {
    self.replica = replica
    self.table = table
    self.reread = reread
    try replica.database.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS _kizunasync_compared(pk PRIMARY KEY) WITHOUT ROWID;
      CREATE TEMP TABLE IF NOT EXISTS _kizunasync_differing(pk, cells);
      DELETE FROM temp._kizunasync_compared;
      DELETE FROM temp._kizunasync_differing;
      """)
  }

  // MARK: Rows

  /// Queues a row that the server neither has nor deleted, if such rows are kept.
  /// - Returns: whether it stays.
  mutating func keepRow(_ pk: String) throws -> Bool {
    guard reread.keep >= .rows else { return false }
    let layout = try replica.layout(table)
    guard let cells = try replica.cells(layout, pk: pk) else { return false }
    try journal("i", layout, new: cells, old: nil)
    count += 1
    return true
  }

  // MARK: Cells

  /// Looks at the rows of a page before it is applied. Of a row that comes several times the first counts: from then on
  /// it is the server's.
  mutating func note(_ page: PullPage) throws {
    guard reread.keep >= .changes else { return }
    let layout = try replica.layout(table)
    try page.forEachItem { item, bytes in
      guard item.table == table, item.row != nil else { return }
      let pk = try item.key(in: bytes)
      try database.run("INSERT OR IGNORE INTO temp._kizunasync_compared VALUES (?)", .text(pk))
      // Rows with queued writes were compared before, see `Replica.keepUnseenOfQueue`.
      guard database.changes == 1, try !replica.hasEntries(table, pk: pk) else { return }
      guard let cells = try replica.cells(layout, pk: pk) else { return }
      before.append((pk, try replica.exactRow(layout, pk: pk, cells: cells)))
    } tombstones: { _, _ in
    }
  }

  /// Compares them with what the page made of them.
  mutating func compare() throws {
    defer { before = [] }
    let layout = try replica.layout(table)
    for (pk, old) in before {
      guard let cells = try replica.cells(layout, pk: pk) else { continue }
      try noteChanges(of: pk, layout, shown: old, known: replica.exactRow(layout, pk: pk, cells: cells))
    }
  }

  private func noteChanges(of pk: String, _ layout: TableLayout, shown: RowMap, known: RowMap) throws {
    let changed = changes(layout, shown: shown, known: known)
    if changed.isEmpty { return }
    try database.run(
      "INSERT INTO temp._kizunasync_differing VALUES (?, ?)", .text(pk), .text(JSONWriter.text(.object(changed))))
  }

  private func changes(_ layout: TableLayout, shown: RowMap, known: RowMap) -> RowMap {
    var changed: RowMap = [:]
    for column in layout.syncedPositions.map({ layout.columns[$0] }) {
      // A cell that is missing here was never written here. One that only the server lacks was.
      guard !column.isKey, !reread.fresh.contains(column.name), let was = shown[column.name], !was.isNull else {
        continue
      }
      // What was read before a kind was learned is read again as what it is.
      func exact(_ value: JSONValue) -> JSONValue {
        CellCodec.decode(CellCodec.encode(value, kind: column.kind), kind: column.kind)
      }
      let value = exact(was)
      if value != exact(known[column.name] ?? .null) { changed[column.name] = value }
    }
    return changed
  }

  // MARK: The queue

  /// Journals what rows with queued writes hold beyond what these make of the server's rows.
  mutating func keepQueued() throws {
    let layout = try replica.layout(table)
    let keys = try database.map("SELECT DISTINCT pk FROM _kizunasync_outbox WHERE tbl = ?", [.text(table)]) {
      $0.string(0)
    }
    for pk in keys {
      guard let image = try replica.image(table, pk: pk), let cells = try replica.cells(layout, pk: pk),
        let known = Overlay.visible(image: image, entries: try replica.entries(table, pk: pk))
      else { continue }
      let changed = changes(layout, shown: try replica.exactRow(layout, pk: pk, cells: cells), known: known)
      if changed.isEmpty { continue }
      var before = cells
      for (position, column) in layout.columns.enumerated() where changed[column.name] != nil {
        before[position] = CellCodec.encode(known[column.name] ?? .null, kind: column.kind)
      }
      try journal("u", layout, new: cells, old: before)
      count += 1
    }
  }

  /// Puts the local cells over the server's rows again and queues them.
  mutating func keepCells() throws {
    var kept = 0
    try database.forEachRow("SELECT pk, cells FROM temp._kizunasync_differing ORDER BY rowid") { row in
      let pk = row.string(0)
      guard let changed = try JSONValue(parsing: row.string(1)).objectValue else { return }
      let layout = try replica.layout(table)
      guard let old = try replica.cells(layout, pk: pk) else { return }
      var new = old
      for (position, column) in layout.columns.enumerated() {
        if let value = changed[column.name] { new[position] = CellCodec.encode(value, kind: column.kind) }
      }
      let names = changed.keys.sorted()
      do {
        try replica.change(
          layout,
          "UPDATE \(layout.quoted) SET \(names.map { "\(SQL.name($0)) = ?" }.joined(separator: ", ")) WHERE \(layout.whereKey)",
          names.compactMap { layout.positions[$0] }.map { new[$0] } + layout.keyCells(pk))
      } catch let error as SQLiteError where replica.isRefusal(error) {
        return
      }
      try journal("u", layout, new: new, old: old)
      kept += 1
    }
    count += kept
    try database.execute("DELETE FROM temp._kizunasync_compared; DELETE FROM temp._kizunasync_differing;")
  }

  private func journal(_ op: String, _ layout: TableLayout, new: [SQLiteValue], old: [SQLiteValue]?) throws {
    let slots = layout.columns.map(\.slot)
    let columns = slots.map { "n\($0)" } + (old == nil ? [] : slots.map { "o\($0)" })
    try database.run(
      "INSERT INTO _kizunasync_capture(tbl, op, at, \(columns.joined(separator: ", "))) "
        + "VALUES (?, ?, ?, \(SQL.parameters(columns.count)))",
      [.text(table), .text(op), .integer(replica.clock.wallMilliseconds)] + new + (old ?? []))
  }
}
