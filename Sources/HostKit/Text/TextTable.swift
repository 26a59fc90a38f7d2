/// Plain columns for terminals.
public enum TextTable {
  /// Two columns; the left one is padded to its longest entry, at most 40 characters.
  public static func columns(_ rows: [(left: String, right: String)]) -> String {
    let width = min(40, rows.map(\.left.count).max() ?? 0)
    return rows.map { row in
      "  " + row.left + String(repeating: " ", count: max(0, width - row.left.count)) + "  " + row.right
    }.joined(separator: "\n")
  }

  /// A table with a heading row; the first column is flush left, the others flush right.
  public static func table(_ heading: [String], _ rows: [[String]]) -> String {
    let all = [heading] + rows
    let widths = heading.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      row.indices.map { column in
        let pad = String(repeating: " ", count: widths[column] - row[column].count)
        return column == 0 ? row[column] + pad : pad + row[column]
      }.joined(separator: "  ")
    }.joined(separator: "\n")
  }
}
