import Foundation

/// `bytea` as PostgreSQL spells it in JSON: `\x` and two lower-case hex digits for each byte.
enum BytesText {
  private static let digits = Array("0123456789abcdef".utf8)

  static func text(_ bytes: some Sequence<UInt8>) -> String {
    var text = Array("\\x".utf8)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil for anything that is not spelled so.
  static func bytes(_ text: String) -> Data? {
    guard text.hasPrefix("\\x"), text.utf8.count % 2 == 0 else { return nil }
    var data = Data(capacity: text.utf8.count / 2 - 1)
    var high: UInt8?
    for character in text.utf8.dropFirst(2) {
      guard let digit = digit(character) else { return nil }
      if let first = high {
        data.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    return data
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
