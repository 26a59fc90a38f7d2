import HostKit

/// The width of the journal: it has a place for the old and for the new value of each column of the widest table.
extension Replica {
  /// Columns that are added one by one at most: SQLite reads the whole schema again, with all triggers, after each.
  private static let fewSlots = 3
  /// Rows that are copied at most for the sake of that.
  private static let fewRows = 10_000

  /// Makes room in the journal for the values of so many columns.
  func widenJournal(to width: Int) throws {
    try widen(.capture, to: width, ["n", "o"])
    try widen(.displaced, to: width, ["c"])
  }

  private func widen(_ table: Schema.Table, to width: Int, _ kinds: [String]) throws {
    let present = try database.map("SELECT name FROM pragma_table_info(?)", [.text(table.name)]) { $0.string(0) }
    let known = Set(present)
    let new = (0..<width).flatMap { slot in kinds.map { "\($0)\(slot)" } }.filter { !known.contains($0) }
    if new.isEmpty { return }
    if new.count > Self.fewSlots * kinds.count, table.script.hasSuffix(");"), !database.isReading,
      try !hasManyRows(table)
    {
      return try makeAgain(table, present, new)
    }
    for column in new { try database.execute("ALTER TABLE \(table.name) ADD COLUMN \(column)") }
  }

  private func hasManyRows(_ table: Schema.Table) throws -> Bool {
    try database.exists("SELECT 1 FROM \(table.name) LIMIT 1 OFFSET \(Self.fewRows)")
  }

  /// Makes the table again with its rows and more columns. The triggers that use it stay.
  private func makeAgain(_ table: Schema.Table, _ present: [String], _ new: [String]) throws {
    let kept = "temp.\(Schema.prefix)kept"
    let columns = SQL.names(present)
    // What the script does not make are columns without a type.
    let first = Set(try Schema.declaredColumns(of: table))
    let more = (present.filter { !first.contains($0) } + new).map { ", \($0)" }.joined()
    try database.savepoint {
      try database.execute("CREATE TEMP TABLE \(Schema.prefix)kept AS SELECT \(columns) FROM main.\(table.name)")
      try database.execute("DROP TABLE main.\(table.name)")
      try database.execute(table.script.dropLast(2) + more + ");")
      try database.execute(
        "INSERT INTO main.\(table.name)(\(columns)) SELECT \(columns) FROM \(kept); DROP TABLE \(kept)")
    }
  }
}
