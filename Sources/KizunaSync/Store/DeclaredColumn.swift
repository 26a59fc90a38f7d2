/// A column as its table declares it.
struct DeclaredColumn {
  var name: String
  var declaredType: String
  /// From 1; 0 for a column outside the primary key.
  var primaryKeyPosition: Int
  /// The table takes values of the declared types only.
  var isStrict: Bool

  var affinity: ColumnAffinity { ColumnAffinity(declaredType: declaredType, isStrict: isStrict) }

  var impliedKind: ColumnKind? {
    switch declaredType.uppercased() {
    case "BOOLEAN", "BOOL": .boolean
    case "JSON", "JSONB": .json
    default: nil
    }
  }
}

extension Replica {
  /// The columns that can be written; generated ones are left out.
  func tableColumns(_ table: String) throws -> [DeclaredColumn] {
    let isStrict = try database.isStrict(table)
    return try database.map("SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden = 0", [.text(table)]) {
      DeclaredColumn(
        name: $0.string(0), declaredType: $0.string(1), primaryKeyPosition: $0.int(2), isStrict: isStrict)
    }
  }

  func generatedColumns(_ table: String) throws -> Set<String> {
    Set(
      try database.map("SELECT name FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)", [.text(table)]) { $0.string(0) }
    )
  }
}

extension Database {
  func isStrict(_ table: String) throws -> Bool {
    try exists("SELECT 1 FROM pragma_table_list(?) WHERE schema = 'main' AND strict = 1", .text(table))
  }
}
