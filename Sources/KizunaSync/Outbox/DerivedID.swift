/// The mutation id of a write that the journal holds. The same journal row gives the same id again, as after a backup was
/// put back, so that the server recognises what it was sent before; any other row gives another one.
///
/// A hash of 128 bits over the file's journal, the row's number and time, and what is sent, in the shape of a uuid.
struct DerivedID {
  private var hash = SipHash128()

  /// - Parameters:
  ///   - journal: names the file's journal.
  ///   - seq: of the row, which no other row of that journal has.
  ///   - at: milliseconds since 1970.
  init(journal: String, seq: Int64, at: Int64) {
    add(journal)
    hash.add(UInt64(bitPattern: seq))
    hash.add(UInt64(bitPattern: at))
  }

  mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
      // With its length, so that two texts cannot be divided otherwise.
      hash.add(UInt64(bytes.count))
      hash.add(UnsafeRawBufferPointer(bytes))
    }
  }

  func uuid() -> String {
    var halves = Halves(hash.finish())
    return RandomUUID.make(using: &halves)
  }

  private struct Halves: RandomNumberGenerator {
    private var words: [UInt64]

    init(_ hash: (UInt64, UInt64)) { words = [hash.1, hash.0] }

    mutating func next() -> UInt64 { words.popLast() ?? 0 }
  }
}

/// SipHash-2-4 with a result of 128 bits (Aumasson and Bernstein), under the key of the bytes 0 to 15: it is not kept secret.
struct SipHash128 {
  private var v0, v1, v2, v3: UInt64
  /// Bytes that make no whole word yet, the first one lowest.
  private var tail: UInt64 = 0
  private var count = 0

  init() {
    let (k0, k1): (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
    v0 = k0 ^ 0x736f_6d65_7073_6575
    v1 = k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee
    v2 = k0 ^ 0x6c79_6765_6e65_7261
    v3 = k1 ^ 0x7465_6462_7974_6573
  }

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    var index = 0
    while index < bytes.count, count & 7 != 0 || bytes.count - index < 8 {
      add(bytes[index])
      index += 1
    }
    while bytes.count - index >= 8 {
      absorb(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
      count += 8
      index += 8
    }
    while index < bytes.count {
      add(bytes[index])
      index += 1
    }
  }

  mutating func add(_ word: UInt64) {
    withUnsafeBytes(of: word.littleEndian) { add($0) }
  }

  private mutating func add(_ byte: UInt8) {
    tail |= UInt64(byte) << UInt64(8 * (count & 7))
    count += 1
    if count & 7 == 0 {
      absorb(tail)
      tail = 0
    }
  }

  func finish() -> (UInt64, UInt64) {
    var state = self
    state.absorb(tail | UInt64(truncatingIfNeeded: count) << 56)
    state.v2 ^= 0xee
    for _ in 0..<4 { state.round() }
    let first = state.v0 ^ state.v1 ^ state.v2 ^ state.v3
    state.v1 ^= 0xdd
    for _ in 0..<4 { state.round() }
    return (first, state.v0 ^ state.v1 ^ state.v2 ^ state.v3)
  }

  private mutating func absorb(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  private mutating func round() {
    v0 &+= v1
    v1 = v1 << 13 | v1 >> 51
    v1 ^= v0
    v0 = v0 << 32 | v0 >> 32
    v2 &+= v3
    v3 = v3 << 16 | v3 >> 48
    v3 ^= v2
    v0 &+= v3
    v3 = v3 << 21 | v3 >> 43
    v3 ^= v0
    v2 &+= v1
    v1 = v1 << 17 | v1 >> 47
    v1 ^= v2
    v2 = v2 << 32 | v2 >> 32
  }
}
