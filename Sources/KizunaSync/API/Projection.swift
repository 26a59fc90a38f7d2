import HostKit

/// The column lists of `select`: names separated by commas.
enum Projection {
  /// - Returns: nil for all columns.
  /// - Throws: `LOCAL_UNSUPPORTED` for embedded tables and renamed columns.
  static func columns(_ text: String) throws -> [String]? {
    guard !text.contains("("), !text.contains(")") else {
      throw KizunaSyncError(.localUnsupported, "select cannot embed other tables")
    }
    guard !text.contains(":") else {
      throw KizunaSyncError(.localUnsupported, "select cannot rename or cast columns")
    }
    let names = text.split(separator: ",").map { TextMatch.trimmed(String($0)) }.filter { !$0.isEmpty }
    return names.isEmpty || names.contains("*") ? nil : names
  }
}

/// Rows on their way out to the app.
enum RowShape {
  static func rows(_ rows: [RowMap], stripNulls: Bool) -> [[String: Any]] {
    rows.map { row($0, stripNulls: stripNulls) }
  }

  static func row(_ row: RowMap, stripNulls: Bool) -> [String: Any] {
    (stripNulls ? row.filter { !$0.value.isNull } : row).mapValues(PlainValue.any(from:))
  }
}
