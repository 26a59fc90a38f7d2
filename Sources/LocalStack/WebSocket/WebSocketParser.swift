/// Reads the messages of a client from the bytes of one connection, however they are cut.
struct WebSocketParser {
  enum Message: Equatable {
    case text([UInt8])
    case binary([UInt8])
    case ping([UInt8])
    case pong([UInt8])
    case close(code: UInt16?, reason: String)
  }

  /// What the client did wrong, as the code of the close frame it gets.
  enum Violation: UInt16, Error {
    case framing = 1002
    case tooLarge = 1009
  }

  /// Realtime wire contract §2.3: a larger frame is answered with 1009.
  private let maximumBytes: Int
  private var buffer: [UInt8] = []
  private var position = 0
  private var started: (opcode: WebSocketFrame.Opcode, payload: [UInt8])?

  init(maximumBytes: Int = 5_000_000) {
    self.maximumBytes = maximumBytes
  }

  mutating func add(_ bytes: some Collection<UInt8>) {
    if position > 0, position == buffer.count || position > 65_536 {
      buffer.removeFirst(position)
      position = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next whole message; nil when more bytes are needed.
  mutating func next() throws(Violation) -> Message? {
    while let frame = try nextFrame() {
      switch frame.opcode {
      case .ping: return .ping(frame.payload)
      case .pong: return .pong(frame.payload)
      case .close:
        guard frame.payload.count >= 2 else { return .close(code: nil, reason: "") }
        return .close(
          code: UInt16(frame.payload[0]) << 8 | UInt16(frame.payload[1]),
          reason: String(decoding: frame.payload[2...], as: UTF8.self))
      case .text, .binary:
        guard started == nil else { throw .framing }
        if frame.isFinal { return Self.message(frame.opcode, frame.payload) }
        started = (frame.opcode, frame.payload)
      case .continuation:
        guard var message = started else { throw .framing }
        started = nil
        message.payload += frame.payload
        guard message.payload.count <= maximumBytes else { throw .tooLarge }
        if frame.isFinal { return Self.message(message.opcode, message.payload) }
        started = message
      }
    }
    return nil
  }

  private static func message(_ opcode: WebSocketFrame.Opcode, _ payload: [UInt8]) -> Message {
    opcode == .text ? .text(payload) : .binary(payload)
  }

  private mutating func nextFrame() throws(Violation) -> WebSocketFrame? {
    let available = buffer.count - position
    guard available >= 2 else { return nil }
    let (first, second) = (buffer[position], buffer[position + 1])
    guard first & 0x70 == 0, second & 0x80 != 0, let opcode = WebSocketFrame.Opcode(rawValue: first & 0x0F) else {
      throw .framing
    }
    let isFinal = first & 0x80 != 0
    var length = Int(second & 0x7F)
    if opcode.isControl, !isFinal || length > 125 { throw .framing }
    var head = 2
    if length >= 126 {
      let extra = length == 126 ? 2 : 8
      guard available >= 2 + extra else { return nil }
      head += extra
      guard extra == 2 || buffer[position + 2] == 0 else { throw .tooLarge }
      length = buffer[(position + 2)..<(position + head)].reduce(0) { $0 << 8 | Int($1) }
    }
    guard length <= maximumBytes else { throw .tooLarge }
    guard available >= head + 4 + length else { return nil }
    let mask = Array(buffer[(position + head)..<(position + head + 4)])
    let start = position + head + 4
    var payload = Array(buffer[start..<(start + length)])
    payload.withUnsafeMutableBufferPointer { payload in
      for index in payload.indices { payload[index] ^= mask[index & 3] }
    }
    position = start + length
    return WebSocketFrame(opcode: opcode, payload: payload, isFinal: isFinal)
  }
}
