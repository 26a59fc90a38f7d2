import HostKit

/// Writes of tables that are not configured, because they were taken out of the configuration or belong to that of another
/// client of the same file. They are held until the table is configured: nothing of them is sent, and nothing is lost.
///
/// What was queued stays in the outbox. What the triggers captured since waits in the journal, under numbers below zero,
/// because only the configuration says what becomes of it.
extension Replica {
  /// Between the number of a journal row and the one it is held under.
  static let heldOffset: Int64 = 1 << 62

  // MARK: The journal

  /// Tables whose journal rows are held.
  func tablesHeldInJournal() throws -> [String] {
    guard try database.exists("SELECT 1 FROM _kizunasync_capture WHERE seq < 0 LIMIT 1") else { return [] }
    return try database.map("SELECT DISTINCT tbl FROM _kizunasync_capture WHERE seq < 0") { $0.string(0) }
  }

  /// Whether journal rows are held of tables that are configured now.
  func isHeldDue() throws -> Bool { try tablesHeldInJournal().contains { layouts[$0] != nil } }

  /// Keeps a copy of a journal row beside those that are to be harvested.
  func hold(_ row: Harvest.JournalRow) throws {
    let slots = (0..<captureWidth).map { ", n\($0)" }.joined() + (0..<captureWidth).map { ", o\($0)" }.joined()
    try database.run(
      "INSERT OR IGNORE INTO _kizunasync_capture(seq, tbl, op, grp, at\(slots)) "
        + "SELECT seq - \(Self.heldOffset), tbl, op, ?, at\(slots) FROM _kizunasync_capture WHERE seq = ?",
      SQLiteValue(row.group), .integer(row.seq))
  }

  // MARK: The outbox

  /// Tables of the outbox that are not configured.
  func tablesHeldInOutbox() throws -> [String] {
    // From name to name by the index, whatever the queue's length.
    try database.map(
      """
      WITH RECURSIVE names(name) AS (SELECT min(tbl) FROM _kizunasync_outbox UNION ALL
        SELECT (SELECT min(tbl) FROM _kizunasync_outbox WHERE tbl > name) FROM names WHERE name IS NOT NULL)
      SELECT name FROM names WHERE name IS NOT NULL
      """
    ) { $0.string(0) }.filter { settings.tables[$0] == nil }
  }

  /// Which entries of the outbox are held.
  func heldEntries() throws -> HeldEntries {
    let tables = try tablesHeldInOutbox()
    var held = HeldEntries(tables: tables)
    if !tables.isEmpty {
      held.groups.formUnion(
        try database.map(
          "SELECT DISTINCT grp FROM _kizunasync_outbox WHERE grp IS NOT NULL AND NOT \(held.isOfOthers)"
        ) { $0.string(0) })
    }
    held.groups.formUnion(
      try database.map("SELECT DISTINCT grp FROM _kizunasync_capture WHERE seq < 0 AND grp IS NOT NULL") {
        $0.string(0)
      })
    // What comes after a write that is held changes the same row, and what is all-or-nothing with that waits too.
    while !held.groups.isEmpty {
      var pass = held
      try database.forEachRow("SELECT tbl, pk, grp FROM _kizunasync_outbox WHERE state < 2 ORDER BY seq") { row in
        _ = pass.holds(RowID(table: row.string(0), pk: row.string(1)), group: row.optionalString(2))
      }
      if pass.groups == held.groups { break }
      held.groups = pass.groups
    }
    return held
  }

  /// Leaves word for `status`, and says so once in the log.
  func noteHeldWrites() throws {
    let tables = Set(try tablesHeldInOutbox() + tablesHeldInJournal().filter { settings.tables[$0] == nil }).sorted()
    let text = SQLiteValue(tables.isEmpty ? nil : JSONWriter.text(.array(tables.map(JSONValue.string))))
    let known = try database.tablesHeld()
    guard tables != known else { return }
    try database.setMeta(.held, text)
    for table in tables where !known.contains(table) {
      log.warning(
        "store.writes_held",
        [
          "table": .string(table),
          "reason": .string(
            "writes of \(table) wait, which is not configured; they are kept, and sent when it is configured again"),
        ])
    }
  }
}

/// Tells, entry by entry in their order, which must wait for a table that is not configured.
struct HeldEntries {
  let tables: [String]
  /// All-or-nothing groups that have a part in such a table.
  var groups: Set<String> = []
  private var rows: Set<Replica.RowID> = []

  init(tables: [String]) {
    self.tables = tables
  }

  var isEmpty: Bool { tables.isEmpty && groups.isEmpty }

  /// A condition that entries of configured tables fulfil. (The sign keeps SQLite from reading the outbox by its index on
  /// tables, and sorting it.)
  var isOfOthers: String {
    tables.isEmpty ? "1" : "+tbl NOT IN (\(tables.map(SQL.literal).joined(separator: ", ")))"
  }

  /// Whether the entry must wait. Asked in the order of the queue.
  mutating func holds(_ id: Replica.RowID, group: String?) -> Bool {
    if groups.isEmpty { return tables.contains(id.table) }
    guard tables.contains(id.table) || group.map(groups.contains) ?? false || rows.contains(id) else { return false }
    rows.insert(id)
    if let group { groups.insert(group) }
    return true
  }
}

extension Database {
  /// Tables that were not configured for the last client, and of which writes wait.
  func tablesHeld() throws -> [String] {
    let text = try meta(.held).text
    return text.flatMap { try? JSONValue(parsing: $0) }?.arrayValue?.compactMap(\.stringValue) ?? []
  }
}
