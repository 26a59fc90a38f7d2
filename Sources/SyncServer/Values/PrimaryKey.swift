import HostKit

/// How key columns are spelled as key text (Kizuna wire contract §7).
public enum PrimaryKey {
  /// The key text of the parts: the text itself for one column, else an array of strings as PostgreSQL prints `jsonb`.
  public static func spell(_ parts: [String]) -> String {
    guard parts.count != 1 else { return parts[0] }
    var writer = JSONWriter()
    writer.raw("[")
    for (index, part) in parts.enumerated() {
      if index > 0 { writer.raw(", ") }
      writer.write(string: part)
    }
    writer.raw("]")
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// The parts of a key text, one per key column; nil when it is not canonical for these columns.
  static func parts(of text: String, columns: [String], types: [String: ColumnType]) -> [String]? {
    guard !text.isEmpty else { return nil }
    let parts: [String]
    if columns.count == 1 {
      parts = [text]
    } else {
      guard let elements = try? JSONValue(parsing: text).arrayValue, elements.count == columns.count else { return nil }
      let strings = elements.compactMap(\.stringValue)
      guard strings.count == columns.count, spell(strings).utf8.elementsEqual(text.utf8) else { return nil }
      parts = strings
    }
    for (column, part) in zip(columns, parts) where !isCanonical(part, type: types[column]) { return nil }
    return parts
  }

  private static func isCanonical(_ part: String, type: ColumnType?) -> Bool {
    guard let type, let cast = try? type.cast(.string(part)) else { return type == nil }
    return ColumnType.text(of: cast) == part
  }

  /// A cell as its part of the key text; nil when it cannot be one.
  static func part(of cell: JSONValue, type: ColumnType?) -> String? {
    guard let type else {
      if case .bool = cell { return nil }
      return ColumnType.text(of: cell)
    }
    guard let cast = try? type.cast(cell) else { return nil }
    return ColumnType.text(of: cast)
  }

  /// A part of the key text as a cell of its column.
  static func cell(of part: String, type: ColumnType?) -> JSONValue {
    type.flatMap { try? $0.cast(.string(part)) } ?? .string(part)
  }

  /// 8-4-4-4-12 hex digits of either case.
  public static func isUUID(_ text: String) -> Bool {
    let bytes = text.utf8
    guard bytes.count == 36 else { return false }
    return bytes.enumerated().allSatisfy { index, byte in
      switch index {
      case 8, 13, 18, 23: byte == UInt8(ascii: "-")
      default: (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
      }
    }
  }
}
