import HostKit

/// How a row's key is spelled on the wire (Kizuna wire contract §7): one key column as its text, several as a JSON array
/// of strings exactly as PostgreSQL prints `jsonb`.
enum RowKey {
  /// The text of one key value; uuids in lower case.
  /// - Returns: nil when the value cannot be part of a key.
  static func part(_ value: JSONValue?) -> String? {
    switch value {
    case .string(let text): canonical(text)
    case .number(let number) where number.isInteger: number.int64.map { String($0) } ?? number.lexeme
    default: nil
    }
  }

  static func part(_ cell: SQLiteValue) -> String? {
    switch cell {
    case .text(let text): canonical(text)
    case .integer(let number): String(number)
    default: nil
    }
  }

  static func spell(_ parts: [String]) -> String {
    if parts.count == 1 { return parts[0] }
    var writer = JSONWriter()
    writer.raw("[")
    for (index, part) in parts.enumerated() {
      if index > 0 { writer.raw(", ") }
      writer.write(string: part)
    }
    writer.raw("]")
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// The parts of a key text.
  /// - Returns: nil when the text is not a key of `count` columns.
  static func parts(of pk: String, count: Int) -> [String]? {
    if count == 1 { return pk.isEmpty ? nil : [canonical(pk)] }
    guard case .array(let elements)? = try? JSONValue(parsing: pk), elements.count == count else { return nil }
    let parts = elements.compactMap { part($0) }
    return parts.count == count ? parts : nil
  }

  /// Lower case if the text has the shape of a uuid, else unchanged.
  static func canonical(_ text: String) -> String {
    guard text.utf8.count == 36, text.utf8.contains(where: { $0 >= 0x41 && $0 <= 0x46 }), RandomUUID.isWellFormed(text)
    else { return text }
    return text.lowercased()
  }
}
