/// A hybrid logical clock reading (Kizuna wire contract §3.2): `<instant>|<logical>|<node>`.
///
/// Ordered by instant (bytes), then logical (number of any length), then node (bytes).
public struct HLCStamp: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let instant: String
  /// Decimal digits without leading zeros.
  public let logical: String
  public let node: String

  /// Nil when the text does not have the three parts in their grammar.
  public init?(_ text: String) {
    let parts = text.split(separator: "|", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, Self.isInstant(parts[0]), !parts[1].isEmpty, !parts[2].isEmpty,
      parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    let digits = parts[1].drop { $0 == "0" }
    instant = String(parts[0])
    logical = digits.isEmpty ? "0" : String(digits)
    node = String(parts[2])
  }

  private init(instant: String, logical: String, node: String) {
    self.instant = instant
    self.logical = logical
    self.node = node
  }

  /// The same reading with its instant lowered to `latest` when it lies beyond.
  func clamped(to latest: String) -> HLCStamp {
    latest.utf8.lexicographicallyPrecedes(instant.utf8)
      ? HLCStamp(instant: latest, logical: logical, node: node) : self
  }

  public static func < (left: HLCStamp, right: HLCStamp) -> Bool {
    if left.instant != right.instant { return left.instant.utf8.lexicographicallyPrecedes(right.instant.utf8) }
    let (leftDigits, rightDigits) = (left.logical.utf8, right.logical.utf8)
    if leftDigits.count != rightDigits.count { return leftDigits.count < rightDigits.count }
    if left.logical != right.logical { return leftDigits.lexicographicallyPrecedes(rightDigits) }
    return left.node.utf8.lexicographicallyPrecedes(right.node.utf8)
  }

  public var description: String { "\(instant)|\(logical)|\(node)" }

  private static func isInstant(_ text: Substring) -> Bool {
    let pattern = "0000-00-00T00:00:00.000Z".utf8
    return text.utf8.count == pattern.count
      && zip(text.utf8, pattern).allSatisfy { byte, expected in
        expected == UInt8(ascii: "0") ? (0x30...0x39).contains(byte) : byte == expected
      }
  }
}
