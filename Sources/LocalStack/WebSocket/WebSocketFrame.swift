import CLibwebsockets

/// One WebSocket frame (RFC 6455 §5.2).
struct WebSocketFrame: Equatable {
  enum Opcode: UInt8 {
    case continuation = 0
    case text = 1
    case binary = 2
    case close = 8
    case ping = 9
    case pong = 10

    var isControl: Bool { rawValue >= 8 }
  }

  var opcode: Opcode
  var payload: [UInt8]
  var isFinal = true

  /// As a server sends it: unmasked.
  func encoded() -> [UInt8] {
    var bytes: [UInt8] = [opcode.rawValue | (isFinal ? 0x80 : 0)]
    let count = payload.count
    bytes.reserveCapacity(count + 10)
    switch count {
    case ..<126: bytes.append(UInt8(count))
    case ..<65_536: bytes += [126, UInt8(count >> 8), UInt8(count & 0xFF)]
    default: bytes += [127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
    }
    bytes += payload
    return bytes
  }

  static func close(code: UInt16?, reason: String) -> WebSocketFrame {
    let payload = code.map { [UInt8($0 >> 8), UInt8($0 & 0xFF)] + Array(reason.utf8.prefix(123)) } ?? []
    return WebSocketFrame(opcode: .close, payload: payload)
  }
}

/// The answer to a `sec-websocket-key` (RFC 6455 §4.2.2).
enum WebSocketHandshake {
  /// Whether a request asks for a WebSocket in the way the protocol wants (RFC 6455 §4.1). Others are plain requests,
  /// whatever else is wrong with them.
  static func isOne(_ request: StackRequest) -> Bool {
    request.method == "GET" && request.header("upgrade")?.lowercased() == "websocket"
      && request.header("connection")?.lowercased().contains("upgrade") == true
      && request.header("sec-websocket-key") != nil
  }

  static func acceptKey(for key: String) -> String {
    let input = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
    var digest = [UInt8](repeating: 0, count: 20)
    lws_SHA1(input, input.count, &digest)
    var encoded = [CChar](repeating: 0, count: 32)
    let length = digest.withUnsafeBytes {
      lws_b64_encode_string($0.bindMemory(to: CChar.self).baseAddress, 20, &encoded, 32)
    }
    return String(decoding: encoded.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
