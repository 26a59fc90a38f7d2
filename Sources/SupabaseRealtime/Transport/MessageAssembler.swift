/// Puts the pieces of inbound WebSocket messages together, within two limits.
///
/// A message over the first is counted to its end without being kept, so that a large broadcast costs a ring and not the
/// connection. One over the second is no message of a Realtime server any more: it may have no end.
struct MessageAssembler {
  enum Output: Equatable {
    case message(RealtimeTransportMessage)
    case tooLarge(bytes: Int)
    /// The message went past the second limit. Nothing is taken from this connection any more.
    case endless
  }

  private let limit: Int
  private let ceiling: Int
  private var kept: [UInt8] = []
  private var size = 0
  /// The size, with an empty piece counted as one byte: a chain of empty fragments has no end either.
  private var weight = 0
  private var isGivenUp = false

  /// - Parameters:
  ///   - limit: bytes of the longest message that is delivered.
  ///   - ceiling: bytes after which a message counts as endless; not below `limit`.
  init(limit: Int, ceiling: Int) {
    self.limit = limit
    self.ceiling = max(limit, ceiling)
  }

  /// - Parameters:
  ///   - isFirst: the piece begins a message; whatever was unfinished is forgotten.
  ///   - isLast: the piece ends the message.
  /// - Returns: what the piece completed. `.endless` comes once, and nothing after it.
  mutating func add(_ piece: UnsafeRawBufferPointer, isFirst: Bool, isLast: Bool, isBinary: Bool) -> Output? {
    if isGivenUp { return nil }
    if isFirst { reset() }
    size += piece.count
    weight += max(piece.count, 1)
    guard weight <= ceiling else {
      reset()
      isGivenUp = true
      return .endless
    }
    let fits = size <= limit
    if isLast, fits, kept.isEmpty {
      reset()
      return .message(Self.message(piece, isBinary: isBinary))
    }
    if fits { kept.append(contentsOf: piece) } else { kept = [] }
    guard isLast else { return nil }
    defer { reset() }
    return fits
      ? .message(kept.withUnsafeBytes { Self.message($0, isBinary: isBinary) }) : .tooLarge(bytes: size)
  }

  private mutating func reset() {
    kept = []
    size = 0
    weight = 0
  }

  /// Invalid UTF-8 in a text is repaired rather than refused: the layer above counts what does not parse, and one bad
  /// message must not end the connection.
  private static func message(_ bytes: UnsafeRawBufferPointer, isBinary: Bool) -> RealtimeTransportMessage {
    isBinary ? .binary(Array(bytes)) : .text(String(decoding: bytes, as: UTF8.self))
  }
}
