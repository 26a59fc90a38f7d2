import HostKit

/// Reading and dismissing the journals, and what status asks for.
extension Replica {
  func rejections(includeDismissed: Bool) throws -> [KizunaSyncRejection] {
    try Self.rejections(includeDismissed: includeDismissed, in: database).map(\.rejection)
  }

  /// With the members of each, the text of a JSON array.
  static func rejections(
    includeDismissed: Bool, in database: Database
  ) throws -> [(rejection: KizunaSyncRejection, members: String)] {
    let filter = includeDismissed ? "" : " WHERE dismissed = 0"
    return try database.map(
      "SELECT mutation_id, tbl, pk, kind, reason, members, server_row, at, dismissed FROM _kizunasync_rejections"
        + filter + " ORDER BY n"
    ) { row in
      let rejection = KizunaSyncRejection(
        mutationId: row.string(0), table: row.string(1), pk: row.string(2), kind: row.string(3), reason: row.string(4),
        changedColumns: changedColumns(row.string(5), of: row.string(0)), serverRowJson: row.string(6),
        at: row.int64(7), dismissed: row.int(8) != 0)
      return (rejection, row.string(5))
    }
  }

  private static func changedColumns(_ members: String, of mutationID: String) -> [String] {
    let list = (try? JSONValue(parsing: members))?.arrayValue ?? []
    guard let mutation = list.first(where: { $0["mutation_id"]?.stringValue == mutationID }) else { return [] }
    let names = ["columns", "transforms"].flatMap { mutation[$0]?.objectValue.map { Array($0.keys) } ?? [] }
    return names.sorted(by: JSONWriter.bytewise)
  }

  func dismissRejection(_ mutationID: String) throws -> Bool {
    try bareTransaction(sync: .normal, foreignKeys: false) {
      try database.run(
        "UPDATE _kizunasync_rejections SET dismissed = 1 WHERE mutation_id = ? AND dismissed = 0", .text(mutationID))
      return database.changes > 0
    }
  }

  /// Newest first.
  func overwrites(includeDismissed: Bool) throws -> [KizunaSyncOverwrite] {
    let filter = includeDismissed ? "" : " WHERE dismissed = 0"
    return try database.map(
      "SELECT id, tbl, pk, col, loser, winner, mode, winner_seq, at, dismissed FROM _kizunasync_overwrites" + filter
        + " ORDER BY id DESC"
    ) { row in
      KizunaSyncOverwrite(
        id: row.int64(0), table: row.string(1), pk: row.string(2), column: row.string(3),
        loserValueJson: row.string(4), winnerMutationId: row.string(5), conflictMode: row.string(6),
        winnerSeq: row.optionalString(7), at: row.int64(8), dismissed: row.int(9) != 0)
    }
  }

  func dismissOverwrite(_ id: Int64) throws -> Bool {
    try bareTransaction(sync: .normal, foreignKeys: false) {
      try database.run("UPDATE _kizunasync_overwrites SET dismissed = 1 WHERE id = ? AND dismissed = 0", .integer(id))
      return database.changes > 0
    }
  }

  func checkpoint() throws -> KizunaSyncCheckpoint {
    let reason = try database.meta(.softBlock).text
    return KizunaSyncCheckpoint(cursor: try durableCursor(), softBlocked: reason != nil, softBlockReason: reason)
  }

  /// Entries that wait, as the wire spells them.
  func queued() throws -> [JSONValue] {
    try database.map(OutboxEntry.selection + " WHERE state < 2 ORDER BY seq") { row in
      var writer = JSONWriter()
      try OutboxEntry(row).write(to: &writer)
      return try JSONValue(parsing: writer.bytes)
    }
  }
}
