/// Base64 of RFC 4648, in both alphabets.
public enum Base64 {
  public enum Alphabet: Sendable {
    /// `+` and `/`, padded.
    case standard
    /// `-` and `_`, without padding, as in JSON web tokens.
    case url
  }

  public static func encode(_ bytes: some Collection<UInt8>, _ alphabet: Alphabet = .standard) -> String {
    let symbols = alphabet == .standard ? standardSymbols : urlSymbols
    var out: [UInt8] = []
    out.reserveCapacity((bytes.count + 2) / 3 * 4)
    var (bits, held): (UInt32, UInt32) = (0, 0)
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      held += 8
      while held >= 6 {
        held -= 6
        out.append(symbols[Int(bits >> held & 63)])
      }
    }
    if held > 0 { out.append(symbols[Int(bits << (6 - held) & 63)]) }
    if alphabet == .standard {
      while out.count % 4 != 0 { out.append(UInt8(ascii: "=")) }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Nil when the text is not of this alphabet. Padding may be left out; bits that would stand for no byte must be zero.
  public static func decode(_ text: some StringProtocol, _ alphabet: Alphabet = .standard) -> [UInt8]? {
    var symbols = Array(text.utf8)
    if symbols.last == UInt8(ascii: "="), symbols.count % 4 == 0 {
      symbols.removeLast()
      if symbols.last == UInt8(ascii: "=") { symbols.removeLast() }
    }
    guard symbols.count % 4 != 1 else { return nil }
    var out: [UInt8] = []
    out.reserveCapacity(symbols.count * 3 / 4)
    var (bits, held): (UInt32, UInt32) = (0, 0)
    for symbol in symbols {
      guard let value = value(of: symbol, alphabet) else { return nil }
      bits = bits << 6 | value
      held += 6
      if held >= 8 {
        held -= 8
        out.append(UInt8(truncatingIfNeeded: bits >> held))
      }
    }
    return bits & ((1 << held) - 1) == 0 ? out : nil
  }

  private static let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  private static let standardSymbols = Array((letters + "+/").utf8)
  private static let urlSymbols = Array((letters + "-_").utf8)

  private static func value(of symbol: UInt8, _ alphabet: Alphabet) -> UInt32? {
    switch symbol {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(symbol - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(symbol - UInt8(ascii: "a") + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(symbol - UInt8(ascii: "0") + 52)
    case UInt8(ascii: "+") where alphabet == .standard, UInt8(ascii: "-") where alphabet == .url: 62
    case UInt8(ascii: "/") where alphabet == .standard, UInt8(ascii: "_") where alphabet == .url: 63
    default: nil
    }
  }
}
