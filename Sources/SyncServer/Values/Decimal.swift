/// A decimal number of any size, for sums that must not lose a digit.
struct Decimal: Hashable, Sendable, CustomStringConvertible {
  private var negative: Bool
  /// Decimal digits, most significant first, at least one; the last `scale` of them stand behind the point.
  private var digits: [UInt8]
  private let scale: Int

  private init(negative: Bool, digits: [UInt8], scale: Int) {
    let leading = digits.prefix(max(0, digits.count - scale - 1)).prefix { $0 == 0 }.count
    self.digits = Array(digits.dropFirst(leading))
    self.scale = scale
    self.negative = negative && digits.contains { $0 != 0 }
  }

  /// Reads `-12.50`, `+3`, `1e-3`. Nil for other text and for exponents beyond ±1000.
  init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    var at = 0
    var negative = false
    if at < bytes.count, bytes[at] == UInt8(ascii: "-") || bytes[at] == UInt8(ascii: "+") {
      negative = bytes[at] == UInt8(ascii: "-")
      at += 1
    }
    var digits: [UInt8] = []
    var fraction = 0
    func take() -> Int {
      let before = digits.count
      while at < bytes.count, (0x30...0x39).contains(bytes[at]) {
        digits.append(bytes[at] - 0x30)
        at += 1
      }
      return digits.count - before
    }
    let whole = take()
    if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
      at += 1
      fraction = take()
    }
    guard whole + fraction > 0 else { return nil }
    if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
      guard let exponent = Int(String(decoding: bytes[(at + 1)...], as: UTF8.self)), abs(exponent) <= 1000 else {
        return nil
      }
      at = bytes.count
      fraction -= exponent
      if fraction < 0 {
        digits.append(contentsOf: repeatElement(0, count: -fraction))
        fraction = 0
      }
    }
    guard at == bytes.count else { return nil }
    if digits.count <= fraction {
      digits.insert(contentsOf: repeatElement(0, count: fraction + 1 - digits.count), at: 0)
    }
    self.init(negative: negative, digits: digits, scale: fraction)
  }

  /// True when nothing stands behind the point.
  var isInteger: Bool { scale == 0 }

  /// True below 2³¹ in magnitude, where the protocol writes integers as JSON numbers.
  var isBelow2To31: Bool {
    guard isInteger, let value = Int64(description) else { return false }
    return value.magnitude < 1 << 31
  }

  static func + (left: Decimal, right: Decimal) -> Decimal {
    let scale = max(left.scale, right.scale)
    let (a, b) = aligned(left, right, scale: scale)
    if left.negative == right.negative {
      return Decimal(negative: left.negative, digits: add(a, b), scale: scale)
    }
    return b.lexicographicallyPrecedes(a)
      ? Decimal(negative: left.negative, digits: subtract(a, b), scale: scale)
      : Decimal(negative: right.negative, digits: subtract(b, a), scale: scale)
  }

  /// Both as digit arrays of one length.
  private static func aligned(_ left: Decimal, _ right: Decimal, scale: Int) -> ([UInt8], [UInt8]) {
    let a = left.digits + repeatElement(0, count: scale - left.scale)
    let b = right.digits + repeatElement(0, count: scale - right.scale)
    let length = max(a.count, b.count)
    func pad(_ digits: [UInt8]) -> [UInt8] { repeatElement(0, count: length - digits.count) + digits }
    return (pad(a), pad(b))
  }

  private static func add(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
    var sum: [UInt8] = []
    var carry: UInt8 = 0
    for index in a.indices.reversed() {
      let digit = a[index] + b[index] + carry
      sum.append(digit % 10)
      carry = digit / 10
    }
    sum.append(carry)
    return sum.reversed()
  }

  /// `a` is not smaller than `b`.
  private static func subtract(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
    var difference: [UInt8] = []
    var borrow: UInt8 = 0
    for index in a.indices.reversed() {
      let taken = b[index] + borrow
      borrow = a[index] < taken ? 1 : 0
      difference.append(a[index] + borrow * 10 - taken)
    }
    return difference.reversed()
  }

  var description: String {
    var text = negative ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index == digits.count - scale { text += "." }
      text.append(Character(UnicodeScalar(digit + 0x30)))
    }
    return text
  }
}
