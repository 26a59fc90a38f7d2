/// Version 4 uuids in lower case, the only spelling the wire uses.
package enum RandomUUID {
  package static func make() -> String {
    var generator = SystemRandomNumberGenerator()
    return make(using: &generator)
  }

  package static func make(using generator: inout some RandomNumberGenerator) -> String {
    let high = (generator.next() as UInt64) & ~0xF000 | 0x4000
    let low = (generator.next() as UInt64) & ~(0b11 << 62) | (0b10 << 62)
    let digits = Array((hex(high) + hex(low)).utf8)
    var text: [UInt8] = []
    text.reserveCapacity(36)
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text.append(UInt8(ascii: "-")) }
      text.append(digit)
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func hex(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Whether the text is 36 characters in the pattern 8-4-4-4-12 of hexadecimal digits, either case.
  package static func isWellFormed(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count == 36 else { return false }
    for (index, byte) in bytes.enumerated() {
      if [8, 13, 18, 23].contains(index) {
        guard byte == UInt8(ascii: "-") else { return false }
      } else {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
          UInt8(ascii: "A")...UInt8(ascii: "F"):
          continue
        default: return false
        }
      }
    }
    return true
  }
}
