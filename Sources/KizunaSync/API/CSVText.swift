import HostKit

/// Rows as RFC 4180 text: comma, CRLF, quotes doubled where a field needs them. Null and absent are empty fields.
enum CSVText {
  static func text(_ rows: [RowMap], columns: [String]?) -> String {
    let header = columns ?? Set(rows.flatMap(\.keys)).sorted(by: JSONWriter.bytewise)
    let lines =
      [header.map(field)] + rows.map { row in header.map { name in row[name].map(text(of:)).map(field) ?? "" } }
    return lines.map { $0.joined(separator: ",") }.joined(separator: "\r\n")
  }

  private static func text(of value: JSONValue) -> String {
    value.isNull ? "" : CellOrder.text(value)
  }

  private static func field(_ text: String) -> String {
    let special: [UInt8] = [UInt8(ascii: ","), UInt8(ascii: "\""), 13, 10]
    guard text.utf8.contains(where: special.contains) else { return text }
    return "\"" + text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }
}
