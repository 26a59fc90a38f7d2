import Glibc

/// A numeric IPv4 or IPv6 address, as written in a URL or a proxy exception. IPv4-mapped IPv6 counts as IPv4.
public struct IPAddress: Sendable, Hashable {
  /// Four or sixteen bytes, most significant first.
  public let bytes: [UInt8]

  /// Nil when `text` is not an address. Only the dotted form of four decimal numbers is taken for IPv4; an interface
  /// after `%` is ignored.
  public init?(_ text: some StringProtocol) {
    let text = String(text.prefix { $0 != "%" })
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      bytes = withUnsafeBytes(of: four) { Array($0) }
      return
    }
    var sixteen = in6_addr()
    guard inet_pton(AF_INET6, text, &sixteen) == 1 else { return nil }
    let all = withUnsafeBytes(of: sixteen) { Array($0) }
    let isMapped = all[0..<10].allSatisfy { $0 == 0 } && all[10] == 0xFF && all[11] == 0xFF
    bytes = isMapped ? Array(all[12...]) : all
  }

  public var isIPv4: Bool { bytes.count == 4 }

  /// 127/8 or `::1`.
  public var isLoopback: Bool {
    isIPv4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
  }

  /// An address that no router of the public network forwards to: 10/8, 172.16/12, 192.168/16, 169.254/16, fc00::/7,
  /// fe80::/10.
  public var isPrivate: Bool {
    if isIPv4 {
      return bytes[0] == 10 || bytes[0] == 172 && bytes[1] & 0xF0 == 16 || bytes[0] == 192 && bytes[1] == 168
        || bytes[0] == 169 && bytes[1] == 254
    }
    return bytes[0] & 0xFE == 0xFC || bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
  }

  /// Whether the first `length` bits equal those of `network`; false for addresses of the other family.
  public func isInside(_ network: IPAddress, length: Int) -> Bool {
    guard bytes.count == network.bytes.count, (0...bytes.count * 8).contains(length) else { return false }
    let whole = length / 8
    guard bytes[..<whole] == network.bytes[..<whole] else { return false }
    guard length % 8 != 0 else { return true }
    let mask = UInt8(truncatingIfNeeded: 0xFF00 >> (length % 8))
    return bytes[whole] & mask == network.bytes[whole] & mask
  }
}
