import HostKit

/// Who the replica belongs to, which buckets it holds, and T6, the reset.
extension Replica {
  enum OwnerChange: Equatable {
    case none, learned, refused
  }

  /// The user's id that this replica is of; nil until one signed in.
  func owner() throws -> String? { try database.meta(.owner).text }

  /// The first user's id becomes the owner for good; another one blocks sync until a reset.
  func meet(owner subject: String) throws -> OwnerChange {
    let known = try owner()
    if known == subject { return .none }
    if known == nil {
      try bareTransaction(sync: .normal, foreignKeys: false) {
        try database.setMeta(.owner, .text(subject))
        try database.setMeta(.adopting, .null)
      }
      return .learned
    }
    guard try database.meta(.softBlock).text != "identity_changed" else { return .none }
    try transaction {
      try raiseGeneration()
      try clearStaging()
      try database.setMeta(.softBlock, "identity_changed")
    }
    return .refused
  }

  /// Bucket values changed: answers under way and staged pages are for the old ones. That everything is read again follows
  /// from the next pull asking for something the cursor does not cover.
  func forgetTransfer() throws {
    try transaction {
      try raiseGeneration()
      try clearStaging()
    }
  }

  /// Sets the durable cursor without pulling.
  func seed(cursor: String) throws {
    try transaction {
      try raiseGeneration()
      try clearStaging()
      try database.setMeta(.cursor, .text(cursor))
    }
  }

  /// A file that was copied or restored must not go on as the same client: it gets a new client id. Queued writes keep
  /// their ids, so what was sent before is recognised by the server.
  func recogniseInstance(besides file: InstanceFile, machine: String? = MachineID.read()) throws {
    let verdict = InstanceCheck(
      machine: try database.meta(.machine).text, instance: try database.meta(.instance).text,
      former: try database.meta(.formerInstance).text
    ).verdict(machine: machine, beside: file.read())
    try bareTransaction(sync: .normal, foreignKeys: false) {
      if let machine { try database.setMeta(.machine, .text(machine)) }
      if verdict.isCopy {
        try database.setMeta(.clientID, .text(RandomUUID.make()))
        try database.setMeta(.copiedAt, .integer(clock.wallMilliseconds))
        sentPerhapsThrough = try database.value("SELECT max(seq) FROM _kizunasync_capture")?.integer ?? 0
        try takeQueueForSent()
      }
    }
    if verdict.isCopy {
      let captured = (try? pendingJournalRows()) ?? 0
      log.warning(
        "store.copied",
        ["reason": .string(verdict.sentence), "queued": .int(((try? outboxDepth()) ?? 0) + Int(captured))])
    }
    try renewInstance(file)
  }

  /// What a copy holds unsent, its original may have sent: the server may have decided it, so that an insert and a delete
  /// after it are not nothing.
  func takeQueueForSent() throws {
    guard sentPerhapsThrough != nil else { return }
    try database.run("UPDATE _kizunasync_outbox SET state = 1 WHERE state = 0")
  }

  /// Gives the file a new name of its own, which is kept beside it too. The database comes first: when the other is not
  /// written any more, its old name is still known.
  func renewInstance(_ file: InstanceFile) throws {
    let fresh = RandomUUID.make()
    try bareTransaction(sync: .full, foreignKeys: false) {
      let known = try database.meta(.instance)
      // What is beside the file decides, should several renewals have failed to reach it.
      let beside = file.read().map(SQLiteValue.text)
      let former = try database.meta(.formerInstance)
      try database.setMeta(.formerInstance, beside == former ? former : known)
      try database.setMeta(.instance, .text(fresh))
    }
    do {
      try file.write(fresh)
    } catch {
      log.warning("store.instance_file", ["reason": .string(error.description)])
    }
  }

  /// - Parameter time: milliseconds since 1970.
  func noteLastSync(_ time: Int64) throws {
    try bareTransaction(sync: .normal, foreignKeys: false) { try database.setMeta(.lastSync, .integer(time)) }
  }

  /// What was synced before is the former user's as well.
  private func emptyTablesNotConfigured() throws {
    let tables = try database.map(
      "SELECT name FROM _kizunasync_tables t WHERE EXISTS (SELECT 1 FROM sqlite_schema s "
        + "WHERE s.type = 'table' AND s.name = t.name COLLATE NOCASE)"
    ) { $0.string(0) }
    for table in tables where settings.tables[table] == nil {
      do {
        try database.savepoint { try database.run("DELETE FROM \(SQL.name(table))") }
      } catch let error as SQLiteError where database.isInTransaction {
        log.warning("store.table_not_emptied", ["table": .string(table), "reason": .string(error.message)])
      }
    }
  }

  /// T6: an empty replica of nobody, with a new client id. The hybrid clock goes on, and journal numbers are not reused.
  func reset() throws {
    try transaction(sync: .full, applying: true) {
      for table in layouts.values { try database.run("DELETE FROM \(table.quoted)") }
      try emptyTablesNotConfigured()
      try database.run("DELETE FROM _kizunasync_capture WHERE seq < 0")
      for table in ["outbox", "image", "pages", "absent", "parked", "pushed", "rejections", "overwrites"] {
        try database.run("DELETE FROM \(Schema.prefix)\(table)")
      }
      try database.run(
        "DELETE FROM _kizunasync_meta WHERE key NOT IN "
          + "('hlc', 'harvested', 'version', 'instance', 'former_instance', 'machine') AND key NOT LIKE 'declared:%'")
      try database.setMeta(.clientID, .text(RandomUUID.make()))
      try database.setMeta(.journal, .text(RandomUUID.make()))
      try raiseGeneration()
    }
  }
}
