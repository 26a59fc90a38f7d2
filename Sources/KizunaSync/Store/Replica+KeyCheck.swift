import HostKit

/// Whether a table can tell its rows apart the way the server does: by the bytes of their keys.
extension Replica {
  /// - Throws: `CONFIG_INVALID` naming the table, the column and the remedy.
  func checkKey(_ table: String, _ config: KizunaSyncTableConfig) throws {
    try checkKeyColumns(table, config)
    try checkKeyIndexes(table, config)
  }

  private func checkKeyColumns(_ table: String, _ config: KizunaSyncTableConfig) throws {
    let columns = try tableColumns(table)
    let missing = config.key.filter { name in !columns.contains { $0.name == name } }
    let generated = try generatedColumns(table)
    if let name = missing.first(where: generated.contains) {
      throw KizunaSyncError(
        .configInvalid,
        "the key column \(name) of table \(table) is a generated column, which cannot be written and so cannot be synced; make it an ordinary column, or name another key"
      )
    }
    guard missing.isEmpty else {
      throw KizunaSyncError(
        .configInvalid,
        "the table \(table) has no column \(missing.joined(separator: ", ")), which its configured key names")
    }
    for column in columns where config.key.contains(column.name) { try checkKeyColumn(column, of: table) }
  }

  private func checkKeyColumn(_ column: DeclaredColumn, of table: String) throws {
    let name = column.name
    switch column.affinity {
    case .real, .numeric:
      throw KizunaSyncError(
        .configInvalid,
        "the key column \(name) of table \(table) is declared \(column.declaredType), which turns texts like 1e3 or 0123 into numbers, so that different keys of the server become one; declare it TEXT, or INTEGER if the server's key is an integer"
      )
    case .none where column.isStrict && column.declaredType.uppercased() == "BLOB":
      throw KizunaSyncError(
        .configInvalid,
        "the key column \(name) of the strict table \(table) is declared BLOB and takes no text; declare it TEXT or INTEGER"
      )
    default: break
    }
    let collation = try database.collation(of: name, in: table)
    guard collation.uppercased() == "BINARY" else {
      throw KizunaSyncError(
        .configInvalid,
        "the key column \(name) of table \(table) has the collation \(collation), which takes different keys of the server for one; declare it without COLLATE, or with COLLATE BINARY"
      )
    }
  }

  private struct KeyIndex {
    var name: String
    var isPartial: Bool
    var collations: [String: String]
  }

  /// The key must be the primary key or have a unique index, or rows could not be told apart.
  private func checkKeyIndexes(_ table: String, _ config: KizunaSyncTableConfig) throws {
    let key = Set(config.key)
    let indexes = try database.map(
      "SELECT name, partial FROM pragma_index_list(?) WHERE \"unique\" = 1", [.text(table)]
    ) { ($0.string(0), $0.int(1) != 0) }.map { name, isPartial in
      KeyIndex(
        name: name, isPartial: isPartial,
        collations: Dictionary(
          try database.map("SELECT name, coll FROM pragma_index_xinfo(?) WHERE key = 1", [.text(name)]) {
            ($0.string(0), $0.optionalString(1) ?? "BINARY")
          }, uniquingKeysWith: { first, second in first.uppercased() == "BINARY" ? second : first }))
    }.filter { Set($0.collations.keys) == key }
    for index in indexes {
      guard let (column, collation) = index.collations.first(where: { $0.value.uppercased() != "BINARY" }) else {
        continue
      }
      throw KizunaSyncError(
        .configInvalid,
        "the unique index \(index.name) on the key of table \(table) has the collation \(collation) for the column \(column), which takes different keys of the server for one; make the index with the BINARY collation"
      )
    }
    let primary = Set(try tableColumns(table).filter { $0.primaryKeyPosition > 0 }.map(\.name))
    if primary == key || indexes.contains(where: { !$0.isPartial }) { return }
    if let index = indexes.first {
      throw KizunaSyncError(
        .configInvalid,
        "the only unique index on the key of table \(table), \(index.name), is partial (it has a WHERE) and does not tell all rows apart; make one without WHERE"
      )
    }
    throw KizunaSyncError(
      .configInvalid,
      "the key of table \(table) is configured as (\(config.key.joined(separator: ", "))), but the table has neither a primary key nor a unique index on exactly these columns"
    )
  }
}
