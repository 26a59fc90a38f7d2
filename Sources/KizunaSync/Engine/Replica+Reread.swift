import HostKit

/// Reading the rows of one table again from the start, beside the cursor: what the file no longer knows of that table is
/// filled in, and the other tables are not touched.
///
/// The pages wait in a temporary table until the last one is there. They are lost with the process, and read anew then.
extension Replica {
  struct RereadPosition {
    var table: String
    var generation: Int64
  }

  /// The next table that has to be read again; nil when none has, or when everything is about to be read anyway.
  func nextReread() throws -> RereadPosition? {
    try database.snapshot {
      guard try !isRehydrating(), try durableCursor() != "0" else { return nil }
      guard let table = try database.rereads().tables.keys.filter({ layouts[$0] != nil && setAside[$0] == nil }).min()
      else { return nil }
      return RereadPosition(table: table, generation: try generation())
    }
  }

  /// Looks for writes that no trigger saw in rows that have queued writes, before a push or a pull shows these rows anew.
  func keepUnseenOfQueue() throws {
    let due = try database.rereads().tables.filter { $0.value.isQueueDue }
    if due.isEmpty { return }
    try transaction(applying: true) {
      for (table, reread) in due where layouts[table] != nil && setAside[table] == nil {
        var kept = try KeptChanges(self, table: table, reread)
        try kept.keepQueued()
        try changeRereads { $0.queueWasCompared(table) }
      }
    }
    try harvestNow()
  }

  func clearReread() throws {
    try database.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS _kizunasync_reread(n INTEGER PRIMARY KEY, body BLOB NOT NULL);
      DELETE FROM temp._kizunasync_reread;
      """)
  }

  func stageReread(_ page: PullPage) throws {
    try database.run("INSERT INTO temp._kizunasync_reread(body) VALUES (?)", .blob(page.bytes))
  }

  /// Makes the table equal to what was read, with queued writes over it, in one transaction. The cursor stays.
  /// - Returns: how many local changes were found and are waiting to be queued.
  func closeReread(with last: PullPage, at position: RereadPosition) throws -> Int {
    let table = position.table
    let started = SystemClock.monotonic
    let count: Int? = try transaction(generation: position.generation, applying: true) {
      guard let reread = try database.rereads()[table], layouts[table] != nil, setAside[table] == nil else {
        return nil
      }
      try stageReread(last)
      let applier = try PageApplier(self, tables: [table])
      var kept = try KeptChanges(self, table: table, reread)
      try removeMissing(into: applier, pages: forEachRereadPage) { id in try kept.keepRow(id.pk) }
      try forEachRereadPage { page in
        try kept.note(page)
        try applier.apply(page)
        try kept.compare()
      }
      applier.finish()
      try kept.keepCells()

      let acknowledged = try database.map(
        "SELECT DISTINCT pk FROM _kizunasync_outbox WHERE state = 2 AND tbl = ?", [.text(table)]
      ) { RowID(table: table, pk: $0.string(0)) }
      if !acknowledged.isEmpty {
        try database.run("DELETE FROM _kizunasync_outbox WHERE state = 2 AND tbl = ?", .text(table))
      }
      for id in applier.dirtyRows.union(acknowledged) { try settle(id.table, pk: id.pk) }
      try retryParked()
      try changeRereads { $0.finish(table) }
      return kept.count
    }
    guard let count else { return 0 }
    failures[table] = nil
    log.info(
      "store.table_read_again",
      [
        "table": .string(table), "changes_kept": .int(count),
        "ms": .int(Int((SystemClock.monotonic - started).inMilliseconds)),
      ])
    try clearReread()
    return count
  }

  /// Calls `body` for each page; one is in memory at a time.
  private func forEachRereadPage(_ body: (PullPage) throws -> Void) throws {
    var last: Int64 = 0
    while true {
      let next = try database.first(
        "SELECT n, body FROM temp._kizunasync_reread WHERE n > ? ORDER BY n LIMIT 1", [.integer(last)]
      ) { row in (row.int64(0), row.withBlob(1) { Array($0) }) }
      guard let (n, bytes) = next else { return }
      last = n
      try body(PullPage(bytes))
    }
  }
}
