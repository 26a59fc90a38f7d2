/// Puts the pieces of inbound WebSocket messages together, within a limit.
///
/// A message over the limit is counted to its end without being kept, so that the connection can go on.
struct MessageAssembler {
  enum Output: Equatable {
    case message(RealtimeTransportMessage)
    case tooLarge(bytes: Int)
  }

  private let limit: Int
  private var kept: [UInt8] = []
  private var size = 0

  init(limit: Int) {
    self.limit = limit
  }

  /// - Parameters:
  ///   - isFirst: the piece begins a message; whatever was unfinished is forgotten.
  ///   - isLast: the piece ends the message.
  /// - Returns: what the piece completed.
  mutating func add(_ piece: UnsafeRawBufferPointer, isFirst: Bool, isLast: Bool, isBinary: Bool) -> Output? {
    if isFirst { reset() }
    size += piece.count
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
  }

  /// Invalid UTF-8 in a text is repaired rather than refused: the layer above counts what does not parse, and one bad
  /// message must not end the connection.
  private static func message(_ bytes: UnsafeRawBufferPointer, isBinary: Bool) -> RealtimeTransportMessage {
    isBinary ? .binary(Array(bytes)) : .text(String(decoding: bytes, as: UTF8.self))
  }
}
