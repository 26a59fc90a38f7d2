import HostKit

/// What the synced tables are declared as, remembered so that one that is dropped can be made again as it was, and one
/// that was put in its place be told from it.
extension Replica {
  private func key(of table: String) -> SQLiteValue { .text("declared:\(table)") }

  /// The statements that make the table, then its indexes and the app's triggers.
  private func currentDeclaration(of table: String) throws -> [String] {
    try database.map(
      "SELECT sql FROM sqlite_schema WHERE tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL AND type <> 'view' "
        + "AND substr(name, 1, 12) <> ? ORDER BY type <> 'table', type <> 'index', rowid",
      [.text(table), .text(Schema.prefix)]
    ) { $0.string(0) }
  }

  private func rememberedDeclaration(of table: String) throws -> [String]? {
    let text = try database.value("SELECT value FROM _kizunasync_meta WHERE key = ?", key(of: table))?.text
    return text.flatMap { try? JSONValue(parsing: $0) }?.arrayValue?.compactMap(\.stringValue)
  }

  /// Somebody changed the table, other than its indexes and triggers, since it was looked at last.
  func isDeclaredOtherwise(_ table: String) throws -> Bool {
    guard let remembered = try rememberedDeclaration(of: table)?.first else { return false }
    return try currentDeclaration(of: table).first != remembered
  }

  func noteDeclaration(of table: String) throws {
    let current = try currentDeclaration(of: table)
    guard try current != rememberedDeclaration(of: table) else { return }
    try database.run(
      "INSERT OR REPLACE INTO _kizunasync_meta VALUES (?, ?)", key(of: table),
      .text(JSONWriter.text(.array(current.map(JSONValue.string)))))
  }

  /// Makes an app's table again as the app declared it.
  /// - Returns: false when that is not known; nothing is made then.
  func remakeDeclared(_ table: String) throws -> Bool {
    guard try !isManaged(table), let statements = try rememberedDeclaration(of: table), let create = statements.first
    else { return false }
    guard execute(create) else { return false }
    for statement in statements.dropFirst() where !execute(statement) {
      log.warning("store.declaration_lost", ["table": .string(table)])
    }
    return true
  }

  /// An index or a trigger may need what is gone too.
  private func execute(_ statement: String) -> Bool {
    (try? database.savepoint { try database.execute(statement) }) != nil
  }

  /// A table that stands where the replica's own one was, and is declared otherwise, is the app's from now on: its schema
  /// is left alone.
  func recogniseOwner(of table: String) throws {
    guard try isManaged(table), let remembered = try rememberedDeclaration(of: table)?.first,
      try currentDeclaration(of: table).first != remembered
    else { return }
    try recordTable(table, managed: false)
    log.info("store.table_replaced", ["table": .string(table)])
  }
}
