import HostKit

/// Files of earlier releases.
///
/// Format 1 has the triggers of today. Those of format 2 journalled a row and judged nothing: which rows a statement
/// displaced and which belong to a group was left to the harvest, by notes in `displaced` and by marks in the journal.
extension Schema {
  /// Leaves the triggers of synced tables to the check of each, which finds those of format 2 lacking and reads the table
  /// again, local changes kept. A row of which only a note told that it was displaced comes back by that, or is parked.
  static func migrate(_ database: Database, from format: Int64, lacking missing: [Table]) throws {
    if format == 2 {
      for name in ["begins", "changes", "is_over"] {
        try database.execute("DROP TRIGGER IF EXISTS _kizunasync_group_\(name)")
      }
      try silenceFormat2Triggers(in: database)
      if !missing.contains(.capture) { try nameFormat2Groups(in: database) }
      if !missing.contains(.displaced) { try database.execute("DELETE FROM _kizunasync_displaced") }
      if !missing.contains(.displaced), !missing.contains(.group),
        try database.exists("SELECT 1 FROM _kizunasync_group")
      {
        try database.run("INSERT INTO _kizunasync_displaced(base_seq) VALUES (?)", .integer(Mark.group.rawValue))
      }
    }
    if !missing.contains(.outbox) { try database.execute(waitingIndex) }
    try database.setMeta(.version, .integer(version))
  }

  /// Rows from a mark with a name to the next mark are of its group. Here each row names its group, and a mark tells only
  /// where one begins.
  private static func nameFormat2Groups(in database: Database) throws {
    let marks = try database.map(
      "SELECT seq, grp FROM _kizunasync_capture WHERE seq >= 0 AND tbl = '' AND op = 'b' ORDER BY seq"
    ) { (seq: $0.int64(0), name: $0.value(1)) }
    let ends = marks.dropFirst().map(\.seq) + [Int64.max]
    for (mark, end) in zip(marks, ends) where !mark.name.isNull {
      try database.run(
        "UPDATE _kizunasync_capture SET grp = ? WHERE seq > ? AND seq < ? AND grp IS NULL", mark.name,
        .integer(mark.seq), .integer(end))
    }
    try database.run(
      "UPDATE _kizunasync_capture SET op = ? WHERE seq >= 0 AND tbl = '' AND op = 'b'", .text(GroupMark.op))
  }

  /// The triggers of format 2 were silent by another trigger of the gateway's connection, and did not name the group. Those
  /// of a table that is not configured stay in use: what the gateway deletes there must not be taken for a change.
  private static func silenceFormat2Triggers(in database: Database) throws {
    let triggers = try database.map(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, 12) = ?", [.text(prefix)]
    ) { (name: $0.string(0), sql: $0.string(1)) }
    for (name, sql) in triggers {
      // Those of format 1 stayed where a table was not configured, and look for themselves.
      guard let body = sql.firstRange(of: "BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, "),
        !sql[..<body.lowerBound].contains(" WHEN ")
      else { continue }
      let values = sql[body.upperBound...].replacing(
        "julianday(), ", with: "(SELECT id FROM _kizunasync_group), julianday(), ", maxReplacements: 1)
      try database.execute("DROP TRIGGER \(SQL.name(name))")
      try database.execute(
        "\(sql[..<body.lowerBound])WHEN (SELECT applying FROM _kizunasync_ctl) = 0 "
          + "BEGIN INSERT INTO _kizunasync_capture(tbl, op, grp, at, \(values)")
    }
  }
}
