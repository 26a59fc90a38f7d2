import HostKit

/// Queueing again what the server refused, or what was given up.
extension Replica {
  /// A refused write as the journal kept it, and how it goes out again.
  private struct Refused {
    var kind: String
    var members: [JSONValue]
    /// Only a write that the server never decided may go out under its old id, and must not change then.
    var keepsIdentity: Bool { kind == "DEAD_LETTER" }
  }

  /// Applies the stored columns of a refused write to the row as it is now, and queues them as the newest write. The entry
  /// leaves the journal.
  ///
  /// A dead letter keeps its mutation ids, because it was never decided and the server may know it; what was decided gets
  /// new ones. What was all-or-nothing stays so.
  /// - Returns: the ids under which it is queued; empty when no such entry is held or it was dismissed.
  /// - Throws: `UNKNOWN_TABLE`, `LOCAL_UNSUPPORTED` for a table that has become pull-only, `LOCAL_CONSTRAINT` when the
  ///   database refuses the row or the write is queued already; nothing is changed then.
  func retryRejection(_ mutationID: String) throws -> [String] {
    try transaction(sync: .full, applying: true) {
      guard let refused = try refused(mutationID) else { return [] }
      var ids: [String] = []
      let group = refused.members.count > 1 ? RandomUUID.make() : nil
      for member in refused.members {
        ids.append(try requeue(member, keepsIdentity: refused.keepsIdentity, group: group))
      }
      try database.run("DELETE FROM _kizunasync_rejections WHERE mutation_id = ?", .text(mutationID))
      return ids
    }
  }

  private func refused(_ mutationID: String) throws -> Refused? {
    let found = try database.first(
      "SELECT kind, members FROM _kizunasync_rejections WHERE mutation_id = ? AND dismissed = 0", [.text(mutationID)]
    ) { ($0.string(0), $0.string(1)) }
    guard let (kind, members) = found else { return nil }
    guard let list = try? JSONValue(parsing: members).arrayValue, !list.isEmpty else {
      throw KizunaSyncError(.store, "the journal of refused writes holds an entry that cannot be read; dismiss it")
    }
    return Refused(kind: kind, members: list)
  }

  /// - Returns: the id of the new entry.
  private func requeue(_ member: JSONValue, keepsIdentity: Bool, group: String?) throws -> String {
    guard let table = member["table"]?.stringValue, let pk = member["pk"]?.stringValue,
      let op = member["op"]?.stringValue.flatMap(KizunaSyncOp.init), let oldID = member["mutation_id"]?.stringValue
    else {
      throw KizunaSyncError(.store, "the journal of refused writes holds an entry that cannot be read; dismiss it")
    }
    let layout = try layout(table)
    guard layout.config.syncMode != .pullOnly else {
      throw KizunaSyncError(.localUnsupported, "the table \(table) is pull-only now; the write cannot be sent again")
    }
    try refuseMalformed(member, table)
    var columns = member["columns"]?.objectValue ?? [:]
    if op == .insert, !keepsIdentity, let column = layout.ownerColumn, !layout.isKey(column), columns[column] == nil,
      let owner = try owner()
    {
      // It may be the reason: written before anybody had signed in.
      columns[column] = .string(owner)
    }
    try ensure(columns.keys, of: table)
    try learn(columns, table: table, firm: false)
    try prepareImage(table, pk: pk)

    let id = keepsIdentity ? oldID : RandomUUID.make()
    if try database.exists("SELECT 1 FROM _kizunasync_outbox WHERE mutation_id = ?", .text(id)) {
      throw KizunaSyncError(.localConstraint, "a write with this mutation id is queued already")
    }
    func text(_ name: String) -> SQLiteValue {
      SQLiteValue(member[name]?.objectValue.map { JSONWriter.text(.object($0)) })
    }
    // One without a stamp was queued when its table wanted none, and is refused for that.
    let stamp =
      keepsIdentity ? try member["hlc"]?.stringValue ?? mintStamp(layout.config) : try mintStamp(layout.config)
    try database.run(
      "INSERT INTO _kizunasync_outbox(mutation_id, tbl, pk, op, columns, transforms, precondition, hlc, grp, captured, at) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)",
      .text(id), .text(table), .text(pk), .text(op.rawValue), .text(JSONWriter.text(.object(columns))),
      text("transforms"), text("precondition"), SQLiteValue(stamp), SQLiteValue(group), .integer(clock.wallMilliseconds)
    )
    try settle(table, pk: pk)
    try refuseParked(table, pk: pk)
    return id
  }

  /// What the row shows now is what the server last sent, when nothing of it is queued. An update of a row that is not
  /// there is sent, for the server to decide, and shows nothing.
  private func prepareImage(_ table: String, pk: String) throws {
    guard try image(table, pk: pk) == nil else { return }
    let layout = try layout(table)
    let known = try row(table, pk: pk)?.filter { name, _ in layout[name].map { !$0.isLocalOnly || $0.isKey } ?? true }
    try setImage(table, pk: pk, known, tombSeq: RowImage.missing)
  }

  /// Such bytes cannot be sent, and what the journal shows of them is not what was written.
  private func refuseMalformed(_ member: JSONValue, _ table: String) throws {
    let columns = member[OutboxEntry.malformedKey]?.arrayValue?.compactMap(\.stringValue) ?? []
    guard let column = columns.first else { return }
    throw KizunaSyncError(
      .localConstraint,
      "the text written to \(column) of \(table) is not UTF-8 and cannot be sent; write the row again with SQL, as UTF-8 or as a blob, and discard this one"
    )
  }

  func mintStamp(_ config: KizunaSyncTableConfig) throws -> String? {
    guard config.conflictMode == .hlc else { return nil }
    var hybrid = HybridClock(state: try database.meta(.hlc).text, newNode: RandomUUID.make)
    let stamp = hybrid.mint(at: clock.wallMilliseconds, now: clock.wallMilliseconds)
    try database.setMeta(.hlc, .text(hybrid.state))
    return stamp
  }

  /// A row of the server that a constraint refuses waits for better times; a write of this host is refused at once.
  private func refuseParked(_ table: String, pk: String) throws {
    let error = try database.value(
      "SELECT error FROM _kizunasync_parked WHERE tbl = ? AND pk = ?", .text(table), .text(pk))?.text
    guard let error else { return }
    throw KizunaSyncError(.localConstraint, "\(table) cannot take the row any more: \(error)")
  }
}
