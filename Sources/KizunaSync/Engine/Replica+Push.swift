import HostKit

/// T1, T2 and T4: what happens to the outbox around a push.
extension Replica {
  /// What is about to be sent, and the generation it belongs to.
  struct Taken {
    var entries: [OutboxEntry]
    var generation: Int64
    var lastMutationID: String?
    var clientID: String
  }

  /// Whether a push has anything to send. Reads only.
  func hasWork() throws -> Bool {
    try database.snapshot {
      // What waits for its owner waits for a token, and a push says so.
      if try isHarvestPending() || !isSignedIn && pendingJournalRows() > 0 && isOwnerAwaited() { return true }
      guard try database.exists("SELECT 1 FROM _kizunasync_outbox WHERE state < 2 LIMIT 1") else { return false }
      return try heldEntries().isEmpty || outboxDepth() > 0
    }
  }

  // MARK: T1

  /// Takes the head of the queue, passing over what is held: a whole group, or at most `limit` ungrouped entries. From here
  /// their bodies never change. On disk before anything is sent, so that a power cut cannot make the queue forget what the
  /// server knows.
  /// - Parameter bytes: about what ungrouped entries may come to, unless it is one alone; nil for any size.
  func take(limit: Int, bytes: Int? = nil) throws -> Taken {
    try transaction(sync: .full) {
      var entries: [OutboxEntry] = []
      var size = 0
      var held = try heldEntries()
      try database.forEachHead(OutboxEntry.selection + " WHERE state < 2 AND \(held.isOfOthers) ORDER BY seq") { row in
        let entry = try OutboxEntry(row)
        if held.holds(RowID(table: entry.table, pk: entry.pk), group: entry.group) { return true }
        if let first = entries.first, first.group != entry.group { return false }
        size += entry.size
        if entry.group == nil, !entries.isEmpty, let bytes, size > bytes { return false }
        entries.append(entry)
        // Its other writes may stand further back, when a part of it was held.
        return entry.group == nil && entries.count < limit
      }
      if let group = entries.first?.group {
        entries = try database.map(
          OutboxEntry.selection + " WHERE state < 2 AND grp = ? ORDER BY seq", [.text(group)], OutboxEntry.init)
      }
      try stampLate(&entries)
      for run in SequenceRuns(entries.map(\.seq)).ranges {
        try database.run(
          "UPDATE _kizunasync_outbox SET state = 1 WHERE state = 0 AND seq BETWEEN ? AND ?", .integer(run.lowerBound),
          .integer(run.upperBound))
      }
      for index in entries.indices { entries[index].state = .sent }
      return Taken(
        entries: entries, generation: try generation(), lastMutationID: try database.meta(.lastMutationID).text,
        clientID: try clientID())
    }
  }

  /// Gives a stamp to what was queued before its table was configured to want one.
  private func stampLate(_ entries: inout [OutboxEntry]) throws {
    for index in entries.indices where entries[index].state == .queued && entries[index].hlc == nil {
      guard let config = settings.tables[entries[index].table], let stamp = try mintStamp(config) else { continue }
      entries[index].hlc = stamp
      try database.run(
        "UPDATE _kizunasync_outbox SET hlc = ? WHERE seq = ?", .text(stamp), .integer(entries[index].seq))
    }
  }

  func clientID() throws -> String {
    try database.meta(.clientID).text ?? settings.clientID
  }

  // MARK: T2

  /// Applies the verdicts of one answer.
  /// - Returns: the events to raise after the commit.
  func settle(_ verdicts: [PushReply.Verdict], of taken: Taken) throws -> [KizunaSyncEngineEvent] {
    try transaction(generation: taken.generation, applying: true) {
      var events: [KizunaSyncEngineEvent] = []
      var changed: [OutboxEntry] = []
      // Applied one after the other.
      var applied = SequenceRuns()
      func acknowledge() throws {
        for range in applied.ranges { try self.acknowledge(range) }
        applied = SequenceRuns()
      }
      for (entry, verdict) in zip(taken.entries, verdicts) {
        if verdict.reason == nil, verdict.serverRow == nil {
          applied.add(entry.seq)
          if try entry.op != .insert && takesRowAway(entry) { changed.append(entry) }
          continue
        }
        try acknowledge()
        if let reason = verdict.reason {
          events.append(.mutationRejected(mutationId: entry.mutationID, reason: reason))
          try journalRejection(
            of: entry, members: [entry], kind: reason == "SUPERSEDED" ? reason : "REJECTED", reason: reason,
            serverRow: verdict.serverRow)
        } else {
          try notePushed(entry.mutationID)
        }
        changed.append(entry)
        if try saysNothingOfTheRow(verdict, entry) {
          try removeEntry(entry)
        } else {
          try install(verdict.serverRow, inAnswerTo: entry)
        }
      }
      try acknowledge()
      if let newest = zip(taken.entries, verdicts).reversed().first(where: { $1.reason == nil }) {
        try database.setMeta(.lastMutationID, .text(newest.0.mutationID))
      }
      try forgetOldPushes()
      try settleRows(of: changed)
      if !events.isEmpty { events.append(.localChanged) }
      return events
    }
  }

  /// After an applied delete, or an update that gave the row to another bucket, what a server sent before no longer stands,
  /// and no tombstone need come to say so: a user who never pulled a row of the bucket is told of no delete (Kizuna wire
  /// contract §12.4). A row that a transfer brought after the write was sent may be a new one, and stays.
  /// - Returns: whether the image was a row, and is none now.
  private func takesRowAway(_ entry: OutboxEntry) throws -> Bool {
    guard let image = try image(entry.table, pk: entry.pk), image.row != nil,
      image.pulledAfter.map({ $0 < entry.seq }) ?? true
    else { return false }
    guard try entry.op == .delete || leavesBucket(entry) else { return false }
    try setImage(entry.table, pk: entry.pk, nil, tombSeq: entry.seq)
    return true
  }

  private func leavesBucket(_ entry: OutboxEntry) throws -> Bool {
    guard entry.op == .update, let column = settings.tables[entry.table]?.bucketColumn,
      let value = try JSONValue(parsing: entry.columns)[column],
      let covered = try database.meta(.covered).text,
      let buckets = try JSONValue(parsing: covered).arrayValue?.filter({ $0["table"] == .string(entry.table) })
    else { return false }
    return !buckets.isEmpty
      && !buckets.contains { $0["params"]?[column].map { CellOrder.text($0) == CellOrder.text(value) } ?? true }
  }

  /// Takes the row that came with a verdict, or its absence.
  ///
  /// Where no transfer has brought the row, none may ever tell of its end either: deletes and moves are told only to a user
  /// who has pulled a row of the bucket (Kizuna wire contract §12.4). It was written after the checkpoint, so the next one
  /// brings it, or it is gone. Until then it shows like a write that was acknowledged.
  private func install(_ row: RowMap?, inAnswerTo entry: OutboxEntry) throws {
    try removeEntryAndShown(entry)
    guard let row, try image(entry.table, pk: entry.pk)?.row == nil, try !isParked(entry.table, pk: entry.pk) else {
      return try setImageFromServer(entry.table, pk: entry.pk, row, isPulled: false)
    }
    try setImage(entry.table, pk: entry.pk, nil, tombSeq: entry.seq - 1)
    try database.run(
      """
      INSERT INTO _kizunasync_outbox(seq, mutation_id, tbl, pk, op, columns, state, captured, at)
        VALUES (?, ?, ?, ?, ?, ?, 2, 0, ?)
      """, .integer(entry.seq), .text(RandomUUID.make()), .text(entry.table), .text(entry.pk),
      .text(KizunaSyncOp.insert.rawValue), .text(JSONWriter.text(.object(try learned(row, of: entry.table)))),
      .integer(clock.wallMilliseconds))
  }

  /// A refused insert without a row, or a refused update that would have given the row away, may only mean that the user
  /// may not write such a row, not that there is none: what the server sent before still stands, and its own word on it
  /// comes with the next pull. (Another update or a delete refused without a row does mean that there is none to see.)
  private func saysNothingOfTheRow(_ verdict: PushReply.Verdict, _ entry: OutboxEntry) throws -> Bool {
    guard verdict.reason == "RLS_DENIED", verdict.serverRow == nil else { return false }
    guard try entry.op == .insert || namesBucket(entry) else { return false }
    return try image(entry.table, pk: entry.pk)?.row != nil
  }

  private func namesBucket(_ entry: OutboxEntry) throws -> Bool {
    guard entry.op == .update, let column = settings.tables[entry.table]?.bucketColumn else { return false }
    return try JSONValue(parsing: entry.columns)[column] != nil
  }

  /// Ids remembered to recognise our own writes among reported conflicts.
  static let rememberedIDs: Int64 = 1000

  /// Writes of one answer that were applied and need no more. The image stays what a server sent: it learns of them from
  /// the next checkpoint. Until then they show as they did before.
  private func acknowledge(_ range: ClosedRange<Int64>) throws {
    let bounds: [SQLiteValue] = [.integer(range.lowerBound), .integer(range.upperBound)]
    try database.run(
      "INSERT OR IGNORE INTO _kizunasync_pushed(mutation_id) SELECT mutation_id FROM _kizunasync_outbox "
        + "WHERE state = 1 AND seq BETWEEN ? AND ? ORDER BY seq", bounds)
    try database.run("UPDATE _kizunasync_outbox SET state = 2 WHERE state = 1 AND seq BETWEEN ? AND ?", bounds)
  }

  private func notePushed(_ mutationID: String) throws {
    try database.run("INSERT OR IGNORE INTO _kizunasync_pushed(mutation_id) VALUES (?)", .text(mutationID))
  }

  private func forgetOldPushes() throws {
    try database.run(
      "DELETE FROM _kizunasync_pushed WHERE n <= (SELECT max(n) FROM _kizunasync_pushed) - ?",
      .integer(Self.rememberedIDs))
  }

  private func settleRows(of entries: [OutboxEntry]) throws {
    var seen: Set<RowID> = []
    for entry in entries where seen.insert(RowID(table: entry.table, pk: entry.pk)).inserted {
      try settle(entry.table, pk: entry.pk)
    }
    try retryParked()
  }

  // MARK: T4

  /// An all-or-nothing batch was refused: its members go, and their rows are put back.
  func abort(_ taken: Taken, offender id: String, reason: String, serverRow: RowMap?) throws -> [KizunaSyncEngineEvent]
  {
    guard let offender = taken.entries.first(where: { $0.mutationID == id }) else { return [] }
    return try transaction(generation: taken.generation, applying: true) {
      try journalRejection(
        of: offender, members: taken.entries, kind: "BATCH_ABORTED", reason: reason, serverRow: serverRow)
      for entry in taken.entries { try removeEntry(entry) }
      let onSameRow = taken.entries.filter { $0.table == offender.table && $0.pk == offender.pk }
      if onSameRow.count == 1 {
        // With another member on the row the answer shows the state before the rollback, which never came to be.
        try install(serverRow, inAnswerTo: offender)
      }
      try settleRows(of: taken.entries)
      return [.batchAborted(offenderMutationId: id, reason: reason), .localChanged]
    }
  }

  /// Gives up what was taken, because it failed too often or cannot be sent at all.
  func deadLetter(_ taken: Taken, reason: String) throws -> [KizunaSyncEngineEvent] {
    guard let head = taken.entries.first else { return [] }
    return try transaction(generation: taken.generation, applying: true) {
      try journalRejection(of: head, members: taken.entries, kind: "DEAD_LETTER", reason: reason, serverRow: nil)
      for entry in taken.entries { try removeEntry(entry) }
      try settleRows(of: taken.entries)
      return [
        .deadLetter(mutationId: head.mutationID, reason: DeadLetterReason.eventReason(of: reason)), .localChanged,
      ]
    }
  }

  /// Counts one permanent failure of the head.
  /// - Returns: how many there were in a row.
  func countFailure(_ taken: Taken, message: String) throws -> Int {
    guard let head = taken.entries.first else { return 0 }
    return try bareTransaction(sync: .normal, foreignKeys: false) {
      try countTry(head)
      try database.run(
        "UPDATE _kizunasync_outbox SET attempts = attempts + 1, error = ? WHERE seq = ?", .text(message),
        .integer(head.seq))
      return try database.first(
        "SELECT attempts FROM _kizunasync_outbox WHERE seq = ?", [.integer(head.seq)]
      ) { $0.int(0) } ?? 0
    }
  }

  /// Remembers why the head was not taken, for those who look.
  /// - Parameter isTrouble: the head itself may be to blame.
  func noteFailure(_ taken: Taken, message: String, isTrouble: Bool) throws {
    guard let head = taken.entries.first else { return }
    try bareTransaction(sync: .normal, foreignKeys: false) {
      try countTry(head)
      if try isTrouble && database.troubleOfHead(head.seq) == nil {
        try database.setMeta(.headTrouble, .text("\(head.seq)|\(clock.wallMilliseconds)"))
      }
      try database.run(
        "UPDATE _kizunasync_outbox SET error = ? WHERE seq = ?", .text(message), .integer(head.seq))
    }
  }

  /// How often the head was sent in vain, for those who look; what it may fail for good is counted elsewhere.
  private func countTry(_ head: OutboxEntry) throws {
    let tries = try database.triesOfHead(head.seq)
    try database.setMeta(.headTries, .text("\(head.seq)|\(tries + 1)"))
  }

  // MARK: Journal

  func journalRejection(
    of entry: OutboxEntry, members: [OutboxEntry], kind: String, reason: String, serverRow: RowMap?
  ) throws {
    var writer = JSONWriter()
    OutboxEntry.write(members, to: &writer)
    try database.run(
      "INSERT OR REPLACE INTO _kizunasync_rejections(mutation_id, tbl, pk, kind, reason, members, server_row, at) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      .text(entry.mutationID), .text(entry.table), .text(entry.pk), .text(kind), .text(reason),
      .text(String(decoding: writer.bytes, as: UTF8.self)), SQLiteValue(serverRow.map { JSONWriter.text(.object($0)) }),
      .integer(clock.wallMilliseconds))
  }
}
