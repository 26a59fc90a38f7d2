import HostKit

/// Columns that other programs rename.
extension Replica {
  /// What columns are called now, by what they were called.
  struct Renames {
    fileprivate struct Kind {
      var kind: SQLiteValue
      var isFirm: SQLiteValue
    }

    fileprivate(set) var names: [String: String] = [:]
    /// What was known of the values under the former names, which are the server's.
    fileprivate var kinds: [String: Kind] = [:]
    /// A column took the name of another.
    fileprivate(set) var areMixed = false

    var isEmpty: Bool { names.isEmpty }
  }

  /// A renamed column keeps its place in the journal, where its values already wait; what is known of the values of a
  /// name, which the server knows too, stays with the name.
  ///
  /// Which column was renamed to what only the triggers say, whose text SQLite changes with the columns: where one takes
  /// the name of another, or a new one that of a renamed one, the names alone look as if nothing had happened.
  func followRenames(_ table: String, _ present: [String]) throws -> Renames {
    var renames = Renames()
    guard let columns = try journalledColumns(of: table) else { return renames }
    let now = Dictionary(columns.map { ($0.slot, $0.name) }, uniquingKeysWith: { first, _ in first })
    let known = try database.map(
      "SELECT col, slot, kind, firm, late FROM _kizunasync_kinds WHERE tbl = ? ORDER BY slot", [.text(table)]
    ) { (name: $0.string(0), slot: $0.int(1), kind: $0.value(2), isFirm: $0.value(3), isLate: $0.value(4)) }
    let moved = known.filter { column in now[column.slot].map { $0 != column.name && present.contains($0) } ?? false }
    guard !moved.isEmpty else { return renames }
    for column in known { renames.kinds[column.name] = Renames.Kind(kind: column.kind, isFirm: column.isFirm) }
    for column in moved {
      try database.run("DELETE FROM _kizunasync_kinds WHERE tbl = ? AND col = ?", .text(table), .text(column.name))
    }
    for column in moved {
      let name = now[column.slot] ?? column.name
      let known = renames.kinds[name]
      renames.names[column.name] = name
      renames.areMixed = renames.areMixed || known != nil
      try database.run(
        "INSERT OR REPLACE INTO _kizunasync_kinds(tbl, col, slot, kind, firm, late) VALUES (?, ?, ?, ?, ?, ?)",
        .text(table), .text(name), .integer(Int64(column.slot)), known?.kind ?? column.kind,
        known?.isFirm ?? column.isFirm, column.isLate)
      log.warning(
        "store.column_renamed",
        [
          "table": .string(table), "column": .string(column.name), "to": .string(name),
          "reason": "the server must know the column by its new name too, or its values are refused",
        ])
    }
    try rename(renames.names, inAbsentCellsOf: table)
    return renames
  }

  /// A new column of a name that was another's until now.
  func learnAgain(_ column: String, of table: String, from renames: Renames) throws {
    guard let known = renames.kinds[column] else { return }
    try database.run(
      "UPDATE _kizunasync_kinds SET kind = ?, firm = ? WHERE tbl = ? AND col = ?", known.kind, known.isFirm,
      .text(table), .text(column))
  }

  private func rename(_ names: [String: String], inAbsentCellsOf table: String) throws {
    let keys = try database.map("SELECT pk FROM _kizunasync_absent WHERE tbl = ?", [.text(table)]) { $0.string(0) }
    for pk in keys {
      let columns = try absentList(table, pk: pk)
      let renamed = columns.map { names[$0] ?? $0 }
      if Set(renamed) != columns { try noteAbsent(table, pk: pk, columns: renamed.sorted()) }
    }
  }
}
