/// A column as its table declares it.
struct DeclaredColumn {
  var name: String
  var declaredType: String
  /// From 1; 0 for a column outside the primary key.
  var primaryKeyPosition: Int

  var affinity: ColumnAffinity { ColumnAffinity(declaredType: declaredType) }

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
    try database.map("SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden = 0", [.text(table)]) {
      DeclaredColumn(name: $0.string(0), declaredType: $0.string(1), primaryKeyPosition: $0.int(2))
    }
  }
}
