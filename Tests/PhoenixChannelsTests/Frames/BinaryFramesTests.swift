import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §2.3.
@Suite struct BinaryFramesTests {
  private let client = PhoenixSerializer(.v2)
  private let server = PhoenixSerializer(.v2, side: .server)

  private static func bytes(_ hex: String) -> [UInt8] {
    hex.split(whereSeparator: \.isWhitespace).map { UInt8($0, radix: 16)! }
  }

  private static let topic =
    "72 65 61 6c 74 69 6d 65 3a 6b 69 7a 75 6e 61 73 79 6e 63 3a 74 6f 64 6f 73 63 68 61 6e 67 65 64"

  @Test func theContractsUserBroadcast() throws {
    let wire = Self.bytes(
      "04 19 07 0b 01 \(Self.topic) 7b 22 69 64 22 3a 22 61 31 22 7d 7b 22 6e 22 3a 31 7d")
    let frame = PhoenixFrame(
      topic: "realtime:kizunasync:todos", event: "broadcast",
      payload: .broadcast(UserBroadcast(event: "changed", meta: ["id": "a1"], content: .json(["n": 1]))))
    #expect(wire.count == 55)
    #expect(try client.decode(.binary(wire)) == frame)
    #expect(try server.encode(frame) == .binary(wire))
    #expect(frame.json == ["type": "broadcast", "event": "changed", "payload": ["n": 1], "meta": ["id": "a1"]])
  }

  @Test func theContractsUserBroadcastPush() throws {
    let wire = Self.bytes("03 01 01 19 07 00 01 33 37 \(Self.topic) 7b 22 6e 22 3a 31 7d")
    let frame = PhoenixFrame(
      joinRef: "3", ref: "7", topic: "realtime:kizunasync:todos", event: "broadcast",
      payload: .broadcast(UserBroadcast(event: "changed", content: .json(["n": 1]))))
    #expect(wire.count == 48)
    #expect(try client.encode(frame) == .binary(wire))
    #expect(try server.decode(.binary(wire)) == frame)
  }

  @Test func opaqueBroadcastsKeepTheirBytes() throws {
    let content: [UInt8] = [0, 255, 0x7B, 10]
    let broadcast = UserBroadcast(event: "blob", content: .bytes(content))
    let frame = PhoenixFrame(topic: "realtime:a", event: "broadcast", payload: .broadcast(broadcast))
    #expect(try client.decode(server.encode(frame)) == frame)
    #expect(frame.json == nil)
    #expect(frame.userBroadcast == broadcast)
  }

  @Test func kindsZeroToTwoAreRead() throws {
    let push = PhoenixFrame(joinRef: "4", topic: "realtime:a", event: "x", payload: .bytes([1, 2]))
    let reply = PhoenixFrame(
      joinRef: "4", ref: "9", topic: "realtime:a", event: "phx_reply", payload: .reply(status: "ok", bytes: [7]))
    let broadcast = PhoenixFrame(topic: "realtime:a", event: "x", payload: .bytes([]))
    for frame in [push, reply, broadcast] {
      #expect(try client.decode(server.encode(frame)) == frame)
    }
    #expect(reply.replyStatus == "ok")
    let upward = PhoenixFrame(joinRef: "4", ref: "5", topic: "realtime:a", event: "x", payload: .bytes([3]))
    #expect(try server.decode(client.encode(upward)) == upward)
  }

  /// D21: lengths count UTF-8 bytes, not characters.
  @Test(arguments: ["é", "€", "😀", "e\u{301}", "\u{0}"])
  func d21_namesOfManyBytes(_ character: String) throws {
    let width = character.utf8.count
    let longest = String(repeating: character, count: 255 / width) + String(repeating: "x", count: 255 % width)
    #expect(longest.utf8.count == 255)
    let frame = PhoenixFrame(
      topic: longest, event: "broadcast",
      payload: .broadcast(UserBroadcast(event: longest, content: .json(nil))))
    let read = try client.decode(server.encode(frame))
    #expect(read == frame)
    #expect(Array(read.topic.utf8) == Array(longest.utf8))

    let topicTooLong = PhoenixFrame(topic: longest + "x", event: "phx_join", [:])
    for serializer in [client, PhoenixSerializer(.v1)] {
      #expect(throws: PhoenixEncodingError.nameTooLong(field: "topic", bytes: 256)) {
        try serializer.encode(topicTooLong)
      }
    }
    var eventTooLong = frame
    eventTooLong.payload = .broadcast(UserBroadcast(event: longest + "x", content: .json(nil)))
    #expect(throws: PhoenixEncodingError.nameTooLong(field: "broadcast event", bytes: 256)) {
      try server.encode(eventTooLong)
    }
  }

  @Test func whatIsNoFrameIsRefusedByName() {
    let cases: [(String, PhoenixDecodingError)] = [
      ("", .empty),
      ("05 00", .unknownKind(5)),
      ("ff", .unknownKind(255)),
      ("03 00 00 00 00 00 00", .unknownKind(3)),
      ("04", .truncated),
      ("04 19 07 0b", .truncated),
      ("04 01 01 00 01 61", .truncated),
      ("04 ff ff ff 01 61 62", .truncated),
      ("04 01 01 00 01 61 62", .notJSON(offset: 0)),
      ("04 01 01 00 01 61 62 7b", .notJSON(offset: 1)),
      ("04 01 01 01 00 61 62 7b", .notJSON(offset: 1)),
      ("04 01 01 00 00 ff 62", .notUTF8(field: "topic")),
      ("04 01 01 00 00 61 c3", .notUTF8(field: "event")),
    ]
    for (hex, error) in cases {
      #expect(throws: error, "\(hex)") { try client.decode(.binary(Self.bytes(hex))) }
    }
    #expect(throws: PhoenixDecodingError.unknownKind(4)) { try server.decode(.binary([4, 0, 0, 0, 0])) }
  }

  @Test func aBinaryMessageNeedsVersionTwo() {
    let frame = PhoenixFrame(
      topic: "realtime:a", event: "broadcast", payload: .broadcast(UserBroadcast(event: "x", content: .bytes([1]))))
    #expect(throws: PhoenixEncodingError.binaryNeedsVersion2) { try PhoenixSerializer(.v1).encode(frame) }
    #expect(throws: PhoenixDecodingError.binaryNeedsVersion2) { try PhoenixSerializer(.v1).decode(.binary([4])) }
    #expect(throws: PhoenixEncodingError.replyFromClient) {
      try client.encode(PhoenixFrame(topic: "a", event: "b", payload: .reply(status: "ok", bytes: [])))
    }
  }

  /// Every prefix of a good frame, and every frame with one byte changed, either reads or is refused.
  @Test func hostileBytesNeverTrap() throws {
    let frames = [
      PhoenixFrame(
        topic: "realtime:é", event: "broadcast",
        payload: .broadcast(UserBroadcast(event: "😀", meta: ["id": "1"], content: .json(["a": [1, "x"]])))),
      PhoenixFrame(joinRef: "4", topic: "realtime:a", event: "x", payload: .bytes([1, 2])),
      PhoenixFrame(
        joinRef: "4", ref: "9", topic: "realtime:a", event: "phx_reply", payload: .reply(status: "ok", bytes: [7])),
    ]
    var read = 0
    for frame in frames {
      guard case .binary(let bytes) = try server.encode(frame) else { throw Unexpected() }
      for serializer in [client, server] {
        for count in 0...bytes.count where (try? serializer.decode(.binary(Array(bytes[..<count])))) != nil {
          read += 1
        }
        for index in bytes.indices {
          for value in UInt8.min...UInt8.max {
            var changed = bytes
            changed[index] = value
            if (try? serializer.decode(.binary(changed))) != nil { read += 1 }
          }
        }
      }
    }
    #expect(read > 1_000)
  }

  private struct Unexpected: Error {}
}
