/// The exact value of a decimal lexeme, comparable with any other: `1`, `1.0` and `10e-1` are one value.
public struct DecimalValue: Sendable, Hashable, Comparable {
  private let negative: Bool
  /// Significant digits (values 0–9) without leading and trailing zeros; empty for zero.
  private let digits: [UInt8]
  /// The power of ten of the first digit: the value is 0.digits × 10^scale.
  private let scale: Int

  public init(_ number: JSONNumber) {
    var digits: [UInt8] = []
    var pointAt: Int?
    var exponent = 0
    var negative = false
    var rest = number.lexeme.utf8[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "-"): negative = true
      case UInt8(ascii: "."): pointAt = digits.count
      case UInt8(ascii: "e"), UInt8(ascii: "E"):
        let text = rest.first == UInt8(ascii: "+") ? rest.dropFirst() : rest
        let limit = 1 << 40  // an exponent beyond this only has to stay on its side of everything else
        exponent = Int(String(text) ?? "").map { min(max($0, -limit), limit) } ?? (text.first == 0x2D ? -limit : limit)
        rest = rest[rest.endIndex...]
      default: digits.append(byte - UInt8(ascii: "0"))
      }
    }
    var scale = (pointAt ?? digits.count) + exponent
    let leading = digits.prefix { $0 == 0 }.count
    digits.removeFirst(leading)
    scale -= leading
    while digits.last == 0 { digits.removeLast() }
    self.digits = digits
    self.scale = digits.isEmpty ? 0 : scale
    self.negative = negative && !digits.isEmpty
  }

  public static func < (left: DecimalValue, right: DecimalValue) -> Bool {
    if left.negative != right.negative { return left.negative }
    return left.negative ? right.isSmallerInMagnitude(than: left) : left.isSmallerInMagnitude(than: right)
  }

  private func isSmallerInMagnitude(than other: DecimalValue) -> Bool {
    if digits.isEmpty || other.digits.isEmpty { return digits.isEmpty && !other.digits.isEmpty }
    if scale != other.scale { return scale < other.scale }
    return digits.lexicographicallyPrecedes(other.digits)
  }
}
