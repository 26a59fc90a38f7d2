import HostKit

/// The bytes of one direction that are on their way, and the end of the stream behind them.
struct FaultPipe {
  private struct Chunk {
    var bytes: ArraySlice<UInt8>
    let due: UInt64
  }

  private enum End {
    case none
    case coming(FaultEnding, due: UInt64)
    case passed
  }

  private static let capacity = 1 << 20

  private var chunks: [Chunk] = []
  private var head = 0
  private var byteCount = 0
  private var end = End.none
  /// Something was swallowed, so the stream is of no use any more.
  private(set) var hasLoss = false

  var hasRoom: Bool { byteCount < Self.capacity }

  mutating func add(_ bytes: ArraySlice<UInt8>, due: UInt64) {
    chunks.append(Chunk(bytes: bytes, due: due))
    byteCount += bytes.count
  }

  mutating func add(_ ending: FaultEnding, due: UInt64) {
    if case .none = end { end = .coming(ending, due: due) }
  }

  /// Throws away what is under way: bytes, and the end behind them.
  /// - Returns: bytes thrown away.
  mutating func swallow() -> Int {
    let count = byteCount
    if count > 0 { hasLoss = true }
    if case .coming = end {
      hasLoss = true
      end = .none
    }
    discard()
    return count
  }

  /// Nobody is left who could take the bytes.
  mutating func discard() {
    chunks = []
    head = 0
    byteCount = 0
  }

  /// What may be sent now, at most `limit` bytes of it.
  func next(now: UInt64, limit: Int) -> ArraySlice<UInt8>? {
    guard head < chunks.count, chunks[head].due <= now else { return nil }
    return chunks[head].bytes.prefix(limit)
  }

  mutating func sent(_ count: Int) {
    byteCount -= count
    chunks[head].bytes = chunks[head].bytes.dropFirst(count)
    guard chunks[head].bytes.isEmpty else { return }
    head += 1
    if head == chunks.count {
      chunks.removeAll(keepingCapacity: true)
      head = 0
    } else if head > 64, head * 2 > chunks.count {
      chunks.removeFirst(head)
      head = 0
    }
  }

  /// The end of the stream, once, when everything before it was sent.
  mutating func takeEnding(now: UInt64) -> FaultEnding? {
    guard head == chunks.count, case .coming(let ending, let due) = end, due <= now else { return nil }
    end = .passed
    return ending
  }

  /// When there is something to pass on next; nil when nothing is under way.
  var nextDue: UInt64? {
    if head < chunks.count { return chunks[head].due }
    if case .coming(_, let due) = end { return due }
    return nil
  }
}
