import HostKit

/// T3 and T5: staging pages, and the one transaction that makes them visible.
extension Replica {
  /// Where a pull goes on.
  struct PullPosition {
    var cursor: String
    var generation: Int64
    var clientID: String
    /// What is asked for, as text that can be compared.
    var buckets: String
  }

  /// A transfer that began longer ago starts again: a tombstone reaped meanwhile would leave a row behind for ever.
  static let longestTransfer: Int64 = 24 * 3_600_000

  /// The page cursor of an unfinished transfer, else the durable cursor; while rehydrating never the durable one.
  ///
  /// A cursor speaks for the tables and bucket values it was got with. When others are asked for, a table that was added
  /// or a bucket that changed, everything is read again from the start.
  func pullPosition(asking buckets: [PullRequest.Bucket]) throws -> PullPosition {
    let asked = JSONWriter.text(PullRequest.json(buckets))
    if let position = try undisturbedPosition(buckets, asked) { return position }
    if try !database.meta(.pageCursor).isNull, try isTransferUnusable(asked) { try dropStaging() }
    if try !isCovered(buckets, asked) {
      try transaction {
        try clearStaging()
        try database.setMeta(.rehydrating, Rehydration.required)
      }
    }
    return try position(asked)
  }

  /// The same where nothing has to be forgotten first, else nil. Writes nothing.
  func undisturbedPosition(asking buckets: [PullRequest.Bucket]) throws -> PullPosition? {
    try undisturbedPosition(buckets, JSONWriter.text(PullRequest.json(buckets)))
  }

  private func undisturbedPosition(_ buckets: [PullRequest.Bucket], _ asked: String) throws -> PullPosition? {
    // Each statement outside a transaction locks and unlocks the file; this runs before every pull.
    try database.snapshot {
      if try !database.meta(.pageCursor).isNull, try isTransferUnusable(asked) { return nil }
      return try isCovered(buckets, asked) ? position(asked) : nil
    }
  }

  private func position(_ asked: String) throws -> PullPosition {
    let durable = try isRehydrating() ? "0" : durableCursor()
    return PullPosition(
      cursor: try database.meta(.pageCursor).text ?? durable, generation: try generation(), clientID: try clientID(),
      buckets: asked)
  }

  private func isTransferUnusable(_ asked: String) throws -> Bool {
    if let started = try database.meta(.transferStarted).integer,
      clock.wallMilliseconds - started > Self.longestTransfer
    {
      return true
    }
    if let cursor = try database.meta(.pageCursor).text, !CursorToken.isWellFormed(cursor) { return true }
    return try database.meta(.transferBuckets) != .text(asked)
  }

  private func isCovered(_ buckets: [PullRequest.Bucket], _ asked: String) throws -> Bool {
    // Everything is being read from the start already, by a transfer that knows what it was asked for.
    if try isRehydrating() { return true }
    // A cursor that was set by hand covers what its setter says.
    guard try durableCursor() != "0", let covered = try database.meta(.covered).text else { return true }
    if covered == asked { return true }
    let known = try JSONValue(parsing: covered).arrayValue ?? []
    return buckets.allSatisfy { known.contains(PullRequest.json($0)) }
  }

  /// One that no server can read, left by an earlier release, is none.
  func durableCursor() throws -> String {
    guard let cursor = try database.meta(.cursor).text, CursorToken.isWellFormed(cursor) else { return "0" }
    return cursor
  }

  func isRehydrating() throws -> Bool {
    try !database.meta(.rehydrating).isNull
  }

  // MARK: Staging

  /// Keeps a page that does not close the checkpoint. Its rows stay invisible.
  func stage(_ page: PullPage, at position: PullPosition) throws {
    try bareTransaction(sync: .normal, foreignKeys: false) {
      if try position.generation != generation() { throw StaleAnswer() }
      if try database.meta(.pageCursor).isNull {
        try database.setMeta(.transferStarted, .integer(clock.wallMilliseconds))
        try database.setMeta(.transferBuckets, .text(position.buckets))
      }
      try database.run("INSERT INTO _kizunasync_pages(body) VALUES (?)", .blob(page.bytes))
      try database.setMeta(.pageCursor, .text(page.cursor))
      try database.setMeta(.transferTrouble, .null)
    }
  }

  /// Forgets the unfinished transfer: the next one starts from the durable cursor.
  func dropStaging() throws {
    guard try !database.meta(.pageCursor).isNull else { return }
    try bareTransaction(sync: .normal, foreignKeys: false) { try clearStaging() }
  }

  func clearStaging() throws {
    // With a condition, because without one an empty table is cleared, which writes a page of its own.
    try database.run("DELETE FROM _kizunasync_pages WHERE n IS NOT NULL")
    try database.setMeta(.pageCursor, .null)
    try database.setMeta(.transferStarted, .null)
    try database.setMeta(.transferBuckets, .null)
    try database.setMeta(.transferTrouble, .null)
  }

  /// An error of the server met the next page of an unfinished transfer.
  /// - Returns: since when nothing else does, milliseconds since 1970; nil when no transfer is unfinished.
  func troubleOfTransfer() throws -> Int64? {
    guard try !database.meta(.pageCursor).isNull || isRehydrating() else { return nil }
    if let since = try database.meta(.transferTrouble).integer { return since }
    let now = clock.wallMilliseconds
    try bareTransaction(sync: .normal, foreignKeys: false) { try database.setMeta(.transferTrouble, .integer(now)) }
    return now
  }

  /// Calls `body` for each staged page, oldest first; one is in memory at a time.
  private func forEachStagedPage(_ body: (PullPage) throws -> Void) throws {
    var last: Int64 = 0
    while true {
      let next = try database.first(
        "SELECT n, body FROM _kizunasync_pages WHERE n > ? ORDER BY n LIMIT 1", [.integer(last)]
      ) { row in (row.int64(0), row.withBlob(1) { Array($0) }) }
      guard let (n, bytes) = next else { return }
      last = n
      try body(PullPage(bytes))
    }
  }

  // MARK: Signals

  /// The server forgot the checkpoint: everything is read again from the start. The outbox stays.
  func beginRehydration(generation: Int64) throws {
    try transaction(generation: generation) {
      try clearStaging()
      try database.setMeta(.rehydrating, Rehydration.required)
    }
  }

  func block(_ reason: String, generation: Int64?) throws {
    try transaction(generation: generation) {
      try clearStaging()
      try database.setMeta(.softBlock, .text(reason))
    }
  }

  // MARK: T3

  /// Whether closing with this page would change nothing at all: the usual answer to a poll.
  func isNothingNew(_ page: PullPage, at position: PullPosition) throws -> Bool {
    guard page.rowCount == 0, page.tombstoneCount == 0, page.conflicts.isEmpty else { return false }
    guard try database.meta(.pageCursor).isNull, page.cursor != "0", try durableCursor() == page.cursor,
      try !isRehydrating(), try generation() == position.generation,
      try database.meta(.covered) == .text(position.buckets)
    else { return false }
    return try acknowledgedRows(limit: 1).isEmpty
  }

  /// Makes a finished transfer visible: staged pages in order, then `last`, and the cursor, in one transaction.
  /// - Returns: the events to raise after the commit.
  func close(with last: PullPage, at position: PullPosition) throws -> [KizunaSyncEngineEvent] {
    let started = SystemClock.monotonic
    let isWhole = try isRehydrating() || durableCursor() == "0"
    let events = try closingTransaction(last, position)
    let took = SystemClock.monotonic - started
    if isWhole, took > .milliseconds(250) {
      log.info("store.whole_state_applied", ["ms": .int(Int(took.inMilliseconds))])
    }
    try reportForeignKeys()
    return events
  }

  private func closingTransaction(_ last: PullPage, _ position: PullPosition) throws -> [KizunaSyncEngineEvent] {
    try transaction(generation: position.generation, applying: true) {
      // A transfer from the start is the whole state.
      let isWhole = try isRehydrating() || durableCursor() == "0"
      var tables = Set(layouts.keys).subtracting(setAside.keys)
      if isWhole {
        // What of these is to be kept shows when they are read alone, right after this.
        try changeRereads { $0.everythingWasRead() }
        try noteSetAside()
        tables.subtract(try database.rereads().tables.keys)
      }
      let applier = try PageApplier(self, tables: tables)
      if isWhole {
        let isSweep = try database.meta(.rehydrating) == Rehydration.sweep
        let spared = try removeMissing(into: applier, sparesUnsent: isSweep) { collect in
          try forEachStagedPage(collect)
          try collect(last)
        }
        try noteWholeState(spared: spared)
      }
      var conflicts: [KizunaSyncEngineEvent] = []
      try forEachStagedPage { page in
        try applier.apply(page)
        conflicts += try journalOverwrites(page.conflicts)
      }
      try applier.apply(last)
      conflicts += try journalOverwrites(last.conflicts)
      applier.finish()

      // What was acknowledged is in the transfer, or was overtaken by what is.
      let acknowledged = try acknowledgedRows()
      if !acknowledged.isEmpty {
        try database.run(
          "DELETE FROM _kizunasync_outbox WHERE state = 2 AND \(HeldEntries(tables: tablesHeldInOutbox()).isOfOthers)")
      }
      for id in applier.dirtyRows.union(acknowledged) { try settle(id.table, pk: id.pk) }
      try retryParked()

      try database.setMeta(.cursor, .text(last.cursor))
      try database.setMeta(.covered, .text(position.buckets))
      try database.setMeta(.rehydrating, .null)
      try clearStaging()
      return [.localChanged] + conflicts
    }
  }

  /// The rows of acknowledged writes. Of a table that is not configured no transfer tells.
  private func acknowledgedRows(limit: Int = -1) throws -> [RowID] {
    guard try database.exists("SELECT 1 FROM _kizunasync_outbox WHERE state = 2 LIMIT 1") else { return [] }
    return try database.map(
      "SELECT DISTINCT tbl, pk FROM _kizunasync_outbox WHERE state = 2 "
        + "AND \(HeldEntries(tables: tablesHeldInOutbox()).isOfOthers) LIMIT \(limit)"
    ) { RowID(table: $0.string(0), pk: $0.string(1)) }
  }

  // MARK: T5

  /// Rows that a complete transfer does not contain are gone. The comparison happens in temporary tables, so that a large
  /// replica costs disk and not memory.
  /// - Parameters:
  ///   - sparesUnsent: leaves rows with undecided changes as they are.
  ///   - pages: calls what it is given for every page of the transfer.
  ///   - keep: takes a row that no queued write accounts for and the server never said to be deleted; whether it stays.
  /// - Returns: how many rows were spared.
  @discardableResult
  func removeMissing(
    into applier: PageApplier, sparesUnsent: Bool = false, pages: ((PullPage) throws -> Void) throws -> Void,
    keep: ((RowID) throws -> Bool)? = nil
  ) throws -> Int {
    var spared = 0
    let hasImages = try database.exists("SELECT 1 FROM _kizunasync_image LIMIT 1")
    guard try hasImages || applier.tables.contains(where: hasRows) else { return spared }
    try database.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS _kizunasync_seen(tbl, pk, PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
      CREATE TEMP TABLE IF NOT EXISTS _kizunasync_deleted(tbl, pk, PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
      CREATE TEMP TABLE IF NOT EXISTS _kizunasync_missing(tbl, pk, PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
      DELETE FROM temp._kizunasync_seen;
      DELETE FROM temp._kizunasync_deleted;
      DELETE FROM temp._kizunasync_missing;
      """)
    try pages { page in
      func note(_ item: PullPage.Item, _ bytes: UnsafeRawBufferPointer) throws {
        if item.row == nil, keep == nil { return }
        try database.run(
          "INSERT OR IGNORE INTO temp._kizunasync_\(item.row == nil ? "deleted" : "seen") VALUES (?, ?)",
          .text(item.table), .text(item.key(in: bytes)))
      }
      try page.forEachItem(note, tombstones: note)
    }
    let isMissing =
      "INSERT OR IGNORE INTO temp._kizunasync_missing SELECT ?1, ?2 WHERE NOT EXISTS "
      + "(SELECT 1 FROM temp._kizunasync_seen WHERE tbl = ?1 AND pk = ?2)"
    for layout in layouts.values where applier.tables.contains(layout.name) {
      try database.forEachRow("SELECT \(layout.keyColumns) FROM \(layout.quoted)") { row in
        guard let pk = layout.pk(ofKey: row.row()) else { return }
        try database.run(isMissing, .text(layout.name), .text(pk))
      }
    }
    for other in ["image", "parked"] {
      try database.run(
        "INSERT OR IGNORE INTO temp._kizunasync_missing SELECT tbl, pk FROM _kizunasync_\(other) i WHERE NOT EXISTS "
          + "(SELECT 1 FROM temp._kizunasync_seen s WHERE s.tbl = i.tbl AND s.pk = i.pk)")
    }
    try forEachMissing { id in
      guard applier.tables.contains(id.table) else { return }
      if try sparesUnsent && isSpared(id) {
        spared += 1
      } else if try hasEntries(id.table, pk: id.pk) {
        try setImage(id.table, pk: id.pk, nil, tombSeq: RowImage.missing)
        applier.dirtyRows.insert(id)
      } else if try keep == nil || isDeleted(id) || keep?(id) == false {
        try show(id.table, pk: id.pk, row: nil, firm: true)
      }
    }
    try database.execute(
      """
      DELETE FROM temp._kizunasync_seen;
      DELETE FROM temp._kizunasync_deleted;
      DELETE FROM temp._kizunasync_missing;
      """)
    return spared
  }

  private func isDeleted(_ id: RowID) throws -> Bool {
    try database.exists(
      "SELECT 1 FROM temp._kizunasync_deleted WHERE tbl = ? AND pk = ?", .text(id.table), .text(id.pk))
  }

  private func forEachMissing(_ body: (RowID) throws -> Void) throws {
    try database.forEachRow("SELECT tbl, pk FROM temp._kizunasync_missing ORDER BY tbl, pk") {
      try body(RowID(table: $0.string(0), pk: $0.string(1)))
    }
  }

  // MARK: Foreign keys

  /// The server decides what there is, so a row may point at one this user cannot see. Counted and reported, never an
  /// error.
  private func reportForeignKeys() throws {
    for layout in layouts.values where !layout.isManaged {
      guard try database.exists("SELECT 1 FROM pragma_foreign_key_list(?)", .text(layout.name)) else { continue }
      // A key that refers to what is no key of the other table cannot be checked.
      let count = try? database.first(
        "SELECT count(*) FROM pragma_foreign_key_check(?)", [.text(layout.name)]
      ) { $0.int(0) }
      guard let broken = count else { continue }
      guard broken != reportedForeignKeys.updateValue(broken, forKey: layout.name) ?? 0 else { continue }
      log.warning("store.foreign_keys", ["table": .string(layout.name), "rows": .int(broken)])
    }
  }

  // MARK: Overwrites

  /// Keeps what other devices' writes replaced. A winner that is our own write is not news, even if its acknowledgement
  /// was lost.
  private func journalOverwrites(_ conflicts: [PullPage.Conflict]) throws -> [KizunaSyncEngineEvent] {
    var events: [KizunaSyncEngineEvent] = []
    for conflict in conflicts {
      let isOurs = try database.exists(
        "SELECT 1 FROM _kizunasync_pushed WHERE mutation_id = ?1 "
          + "UNION ALL SELECT 1 FROM _kizunasync_outbox WHERE mutation_id = ?1", .text(conflict.winner))
      if isOurs { continue }
      let loser = JSONWriter.text(conflict.loser)
      try database.run(
        "INSERT OR IGNORE INTO _kizunasync_overwrites(tbl, pk, col, winner, winner_seq, mode, loser, at) "
          + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        .text(conflict.table), .text(conflict.pk), .text(conflict.column), .text(conflict.winner),
        .text(conflict.winnerSeq), .text(conflict.mode), .text(loser), .integer(clock.wallMilliseconds))
      guard database.changes == 1 else { continue }
      events.append(
        .columnOverwritten(
          table: conflict.table, pk: conflict.pk, column: conflict.column, loserValueJson: loser,
          winnerMutationId: conflict.winner, conflictMode: conflict.mode))
    }
    return events
  }
}
