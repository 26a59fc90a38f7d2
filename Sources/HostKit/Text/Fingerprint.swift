/// A short name for a text that must not be written down, or a check that a text was read whole. Not a cryptographic
/// hash: it only has to differ (FNV-1a, 64 bits).
public enum Fingerprint {
  /// At most 16 hex digits.
  public static func of(_ text: String) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
  }
}
