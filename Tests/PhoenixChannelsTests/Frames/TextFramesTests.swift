import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §2.1 and §2.2.
@Suite struct TextFramesTests {
  private func json(_ message: PhoenixMessage) throws -> JSONValue {
    guard case .text(let text) = message else { throw Unexpected() }
    return try JSONValue(parsing: text)
  }
  private struct Unexpected: Error {}

  @Test func versionOneSendsAllFourKeysAlways() throws {
    let client = PhoenixSerializer(.v1)
    let heartbeat = PhoenixFrame(topic: "phoenix", event: "heartbeat", [:])
    #expect(
      try json(client.encode(heartbeat)) == ["topic": "phoenix", "event": "heartbeat", "payload": [:], "ref": nil])
    let join = PhoenixFrame(joinRef: "1", ref: "1", topic: "realtime:a", event: "phx_join", ["config": [:]])
    #expect(
      try json(client.encode(join)) == [
        "topic": "realtime:a", "event": "phx_join", "payload": ["config": [:]], "ref": "1", "join_ref": "1",
      ])
  }

  @Test func aVersionOneServerNeverSendsTheJoinReference() throws {
    let reply = PhoenixFrame(joinRef: "1", ref: "2", topic: "realtime:a", event: "phx_reply", ["status": "ok"])
    let wire = try json(PhoenixSerializer(.v1, side: .server).encode(reply))
    #expect(wire == ["topic": "realtime:a", "event": "phx_reply", "payload": ["status": "ok"], "ref": "2"])
  }

  @Test func versionTwoSendsFivePlaces() throws {
    let client = PhoenixSerializer(.v2)
    let heartbeat = PhoenixFrame(ref: "7", topic: "phoenix", event: "heartbeat", [:])
    #expect(try client.encode(heartbeat) == .text(#"[null,"7","phoenix","heartbeat",{}]"#))
    let leave = PhoenixFrame(joinRef: "3", ref: "8", topic: "realtime:a", event: "phx_leave", [:])
    #expect(try client.encode(leave) == .text(#"["3","8","realtime:a","phx_leave",{}]"#))
  }

  @Test(arguments: PhoenixVersion.allCases, [PhoenixSerializer.Side.client, .server])
  func framesReadBackAsTheyWereWritten(version: PhoenixVersion, side: PhoenixSerializer.Side) throws {
    let (writer, reader) = (PhoenixSerializer(version, side: side), PhoenixSerializer(version, side: other(side)))
    for topic in ["realtime:a", "realtime:\"q\"\\\n", "realtime:é€😀"] {
      for ref in ["12", nil] {
        for payload: JSONValue in [nil, [:], ["n": .number(JSONNumber(lexeme: "9007199254740993.50")!)], "text", [1]] {
          let joinRef = version == .v1 && side == .server ? nil : "3"
          let frame = PhoenixFrame(joinRef: joinRef, ref: ref, topic: topic, event: "x", payload)
          #expect(try reader.decode(writer.encode(frame)) == frame)
        }
      }
    }
  }

  private func other(_ side: PhoenixSerializer.Side) -> PhoenixSerializer.Side { side == .client ? .server : .client }

  @Test func extraPlacesAndMembersAreIgnored() throws {
    let frame = PhoenixFrame(joinRef: "1", ref: "2", topic: "t", event: "e", 5)
    #expect(try PhoenixSerializer(.v2).decode(.text(#" ["1", "2", "t", "e", 5, {"later":1}, null] "#)) == frame)
    #expect(
      try PhoenixSerializer(.v1).decode(
        .text(#"{"x":[],"ref":"2","payload":5,"join_ref":"1","event":"e","topic":"t"}"#)) == frame)
  }

  /// D22: references of other types do not end the reading.
  @Test func referencesMayBeNullOrNumbers() throws {
    #expect(try PhoenixSerializer(.v2).decode(.text(#"[null,7,"t","e",{}]"#)).ref == "7")
    #expect(try PhoenixSerializer(.v1).decode(.text(#"{"topic":"t","event":"e","payload":null}"#)).ref == nil)
    #expect(throws: PhoenixDecodingError.wrongType(member: "ref")) {
      try PhoenixSerializer(.v2).decode(.text(#"[null,{},"t","e",{}]"#))
    }
  }

  @Test func whatIsNoFrameIsRefusedByName() {
    let two: [(String, PhoenixDecodingError)] = [
      ("", .notJSON(offset: 0)),
      ("[1", .notJSON(offset: 2)),
      ("[] []", .notJSON(offset: 3)),
      ("{}", .wrongShape),
      ("null", .wrongShape),
      ("[]", .tooShort),
      (#"[null,null,"t","e"]"#, .tooShort),
      (#"[null,null,null,"e",{}]"#, .wrongType(member: "topic")),
      (#"[null,null,"t",5,{}]"#, .wrongType(member: "event")),
      (String(repeating: "[", count: 100_000), .notJSON(offset: 513)),
    ]
    for (text, error) in two {
      #expect(throws: error, "\(text.prefix(40))") { try PhoenixSerializer(.v2).decode(.text(text)) }
    }
    let one: [(String, PhoenixDecodingError)] = [
      ("[]", .wrongShape),
      (#"{"event":"e","payload":{},"ref":null}"#, .missing(member: "topic")),
      (#"{"topic":"t","payload":{},"ref":null}"#, .missing(member: "event")),
      (#"{"topic":"t","event":"e","ref":null}"#, .missing(member: "payload")),
    ]
    for (text, error) in one {
      #expect(throws: error, "\(text)") { try PhoenixSerializer(.v1).decode(.text(text)) }
    }
    #expect(throws: PhoenixDecodingError.missing(member: "ref")) {
      try PhoenixSerializer(.v1, side: .server).decode(.text(#"{"topic":"t","event":"e","payload":{}}"#))
    }
  }

  @Test func broadcastsLookTheSameInBothForms() throws {
    let text = #"[null,null,"realtime:a","broadcast",{"type":"broadcast","event":"changed","payload":{"n":1}}]"#
    let frame = try PhoenixSerializer(.v2).decode(.text(text))
    #expect(frame.userBroadcast == UserBroadcast(event: "changed", content: .json(["n": 1])))
    let bare = try PhoenixSerializer(.v2).decode(.text(#"[null,null,"realtime:a","broadcast","odd"]"#))
    #expect(bare.userBroadcast == UserBroadcast(event: "", content: .json(nil)))
    let binary = PhoenixFrame(
      topic: "realtime:a", event: "broadcast",
      payload: .broadcast(UserBroadcast(event: "changed", content: .json(["n": 1]))))
    #expect(
      try json(PhoenixSerializer(.v1, side: .server).encode(binary)) == [
        "topic": "realtime:a", "event": "broadcast", "ref": nil,
        "payload": ["type": "broadcast", "event": "changed", "payload": ["n": 1]],
      ])
  }
}
