/// What SQLite makes of the values of a column, by its declared type (SQLite's documentation on datatypes, §3.1).
enum ColumnAffinity: Equatable {
  case none, text, integer, real, numeric

  init(declaredType: String) {
    let type = declaredType.uppercased()
    if type.contains("INT") {
      self = .integer
    } else if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") {
      self = .text
    } else if type.isEmpty || type.contains("BLOB") || type == "ANY" {
      self = .none
    } else if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") {
      self = .real
    } else {
      self = .numeric
    }
  }
}
