import Testing

@testable import LocalStack

@Suite struct WebSocketParserTests {
  /// A frame as a client sends it.
  static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, isMasked: Bool = true) -> [UInt8] {
    var bytes = WebSocketFrame(opcode: .text, payload: payload, isFinal: isFinal).encoded()
    bytes[0] = bytes[0] & 0x80 | opcode
    guard isMasked else { return bytes }
    let head = bytes.count - payload.count
    bytes[1] |= 0x80
    let mask: [UInt8] = [0xA1, 0x02, 0xFF, 0x40]
    return bytes[..<head] + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
  }

  private func messages(
    _ bytes: [UInt8], size: Int = .max, maximumBytes: Int = 5_000_000
  ) throws -> [WebSocketParser.Message] {
    var parser = WebSocketParser(maximumBytes: maximumBytes)
    var messages: [WebSocketParser.Message] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      parser.add(rest.prefix(size))
      rest = rest.dropFirst(size)
      while let message = try parser.next() { messages.append(message) }
    }
    return messages
  }

  @Test(arguments: [1, 2, 7, 1_000_000])
  func messagesAreReadHoweverTheyAreCut(size: Int) throws {
    let long = [UInt8](repeating: 7, count: 70_000)
    let bytes =
      Self.frame(1, [104, 105]) + Self.frame(2, long) + Self.frame(1, [1], isFinal: false) + Self.frame(9, [5])
      + Self.frame(0, [2], isFinal: false) + Self.frame(0, [3]) + Self.frame(10, []) + Self.frame(8, [3, 232, 98])
      + Self.frame(8, [])
    #expect(
      try messages(bytes, size: size) == [
        .text([104, 105]), .binary(long), .ping([5]), .text([1, 2, 3]), .pong([]), .close(code: 1000, reason: "b"),
        .close(code: nil, reason: ""),
      ])
  }

  @Test(arguments: [
    ("not masked", frame(1, [1], isMasked: false)), ("unknown opcode", frame(3, [1])), ("reserved bit", [0xC1, 0x80]),
    ("continuation of nothing", frame(0, [1])),
    ("a message inside a message", frame(1, [1], isFinal: false) + frame(1, [2])),
    ("fragmented ping", frame(9, [1], isFinal: false)), ("long ping", frame(9, [UInt8](repeating: 0, count: 126))),
  ])
  func whatBreaksTheFramingIsRefused(name: String, bytes: [UInt8]) {
    #expect(throws: WebSocketParser.Violation.framing) { try messages(bytes) }
  }

  @Test func aMessageOverTheLimitIsRefusedBeforeItIsRead() throws {
    #expect(try messages(Self.frame(1, [UInt8](repeating: 0, count: 1_000)), maximumBytes: 1_000).count == 1)
    #expect(throws: WebSocketParser.Violation.tooLarge) {
      try messages(Array(Self.frame(1, [UInt8](repeating: 0, count: 1_001)).prefix(10)), maximumBytes: 1_000)
    }
    #expect(throws: WebSocketParser.Violation.tooLarge) {
      try messages(
        Self.frame(1, [UInt8](repeating: 0, count: 600), isFinal: false)
          + Self.frame(0, [UInt8](repeating: 0, count: 600)), maximumBytes: 1_000)
    }
  }
}
