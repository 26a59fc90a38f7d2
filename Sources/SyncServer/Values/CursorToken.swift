/// A pull cursor (Kizuna wire contract §3.1): `[start:]high-water[~hole.hole…]`.
///
/// This server draws its seqs in commit order, so it never writes holes, but it understands those of another one.
public struct CursorToken: Hashable, Sendable, CustomStringConvertible {
  /// The checkpoint the running transfer started from; nil in a checkpoint token.
  public var start: Int64?
  public var highWater: Int64
  /// Seqs below the high-water that were still in flight, ascending.
  public var holes: [Int64]

  public init(start: Int64? = nil, highWater: Int64, holes: [Int64] = []) {
    self.start = start
    self.highWater = highWater
    self.holes = holes
  }

  /// Nil when the text is not a cursor.
  public init?(_ text: String) {
    let bytes = Array(text.utf8)
    var at = 0
    func number() -> Int64? {
      let from = at
      while at < bytes.count, (0x30...0x39).contains(bytes[at]) { at += 1 }
      guard at > from, bytes[from] != 0x30 || at == from + 1 else { return nil }
      return Int64(String(decoding: bytes[from..<at], as: UTF8.self))
    }
    guard let first = number() else { return nil }
    if at < bytes.count, bytes[at] == UInt8(ascii: ":") {
      at += 1
      guard let second = number() else { return nil }
      (start, highWater) = (first, second)
    } else {
      (start, highWater) = (nil, first)
    }
    holes = []
    guard at < bytes.count else { return }
    var separator = UInt8(ascii: "~")
    while at < bytes.count {
      guard bytes[at] == separator else { return nil }
      at += 1
      guard let hole = number(), hole > (holes.last ?? 0), hole < highWater else { return nil }
      holes.append(hole)
      separator = UInt8(ascii: ".")
    }
  }

  /// The checkpoint that decides whether this cursor is too old.
  public var checkpoint: Int64 { start ?? highWater }

  public var description: String {
    let prefix = start.map { "\($0):" } ?? ""
    let suffix = holes.isEmpty ? "" : "~" + holes.map(String.init).joined(separator: ".")
    return prefix + String(highWater) + suffix
  }
}
