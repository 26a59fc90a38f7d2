import HostKit

/// What happens when somebody drops bookkeeping tables: they are made again, and what they knew is found out again as far
/// as it can be, from the server and from the rows themselves.
extension Replica {
  /// Losing one of these costs nothing that a row of the server depends on.
  private static let harmless: Set<Schema.Table> = [.group, .displaced, .pages, .pushed, .rejections, .overwrites]
  /// After losing nothing but these the cursor still speaks for the rows, so what differs from the server's is a local
  /// change that was waiting here.
  private static let queues: Set<Schema.Table> = [.capture, .outbox]

  func repairBookkeeping() throws {
    let missing = Set(try Schema.missing(in: database))
    guard !missing.isEmpty else { return }
    for table in Schema.Table.allCases where missing.contains(table) { try database.execute(table.script) }
    if missing.contains(.meta) { try rebuildMeta() }
    if missing.contains(.ctl) {
      // Answers under way belong to a generation nobody remembers.
      try database.run("UPDATE _kizunasync_ctl SET generation = ?", .integer(clock.wallMilliseconds))
    }
    try rebuildColumns(missing)
    if missing.contains(.pages) { try clearStaging() }
    if missing.contains(.outbox) { try database.run("DELETE FROM _kizunasync_image") }
    if missing.contains(.image) {
      try database.run(
        "INSERT INTO _kizunasync_image SELECT DISTINCT tbl, pk, NULL, 0 FROM _kizunasync_outbox")
    }
    let serious = missing.subtracting(Self.harmless)
    if !serious.isEmpty {
      let keep: Rereads.Keep = serious.isSubset(of: Self.queues) ? .changes : .rows
      try changeRereads { rereads in
        for (table, config) in settings.tables {
          rereads.ask(table, keep: config.syncMode == .readWrite ? keep : .nothing)
        }
      }
    }
    log.warning(
      "store.bookkeeping_made_again",
      [
        "tables": .array(missing.map(\.name).sorted().map(JSONValue.string)),
        "reason": .string(
          serious.isEmpty
            ? "they were dropped"
            : "they were dropped; all rows are read again from the server, and what differs is queued"),
      ])
  }

  private func rebuildMeta() throws {
    try database.setMeta(.version, .integer(Schema.version))
    try database.setMeta(.clientID, .text(RandomUUID.make()))
    try database.setMeta(.journal, .text(RandomUUID.make()))
    // The harvest deletes all rows before the newest it took, so the oldest is the one it took last.
    let oldest = try database.value("SELECT min(seq) FROM _kizunasync_capture WHERE seq >= 0")?.integer
    try database.setMeta(.harvested, SQLiteValue(oldest))
  }

  /// Tables, columns and the journal's slots know of each other.
  private func rebuildColumns(_ missing: Set<Schema.Table>) throws {
    if missing.contains(.kinds) {
      // What waits in the journal cannot be read without them.
      let newest = try database.value("SELECT max(seq) FROM _kizunasync_capture")?.integer
      if let newest {
        try database.setMeta(.harvested, .integer(newest))
        try database.run("DELETE FROM _kizunasync_capture WHERE seq < ?", .integer(newest))
      }
      try database.run("UPDATE _kizunasync_tables SET slots = 0")
    }
    if missing.contains(.tables) {
      for table in settings.tables.keys.sorted() {
        let columns = try tableColumns(table)
        if columns.isEmpty { continue }
        try recordTable(table, managed: columns.allSatisfy { $0.declaredType.isEmpty })
        try database.run(
          "UPDATE _kizunasync_tables SET slots = (SELECT coalesce(max(slot) + 1, 0) FROM _kizunasync_kinds WHERE tbl = ?1)"
            + " WHERE name = ?1", .text(table))
      }
    }
    let width = try database.value("SELECT max(slots) FROM _kizunasync_tables")?.integer ?? 0
    try widenJournal(to: Int(width))
    if missing.contains(.capture), let harvested = try database.meta(.harvested).integer {
      // Numbers of journal rows are never used twice.
      try database.run("INSERT INTO _kizunasync_capture(seq, tbl, op) VALUES (?, '', 'd')", .integer(harvested))
    }
  }
}
