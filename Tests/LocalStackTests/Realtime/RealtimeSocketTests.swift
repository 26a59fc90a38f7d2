import HostKit
import PhoenixChannels
import Testing

@testable import LocalStack

@Suite struct RealtimeSocketTests {
  private static let topic = "realtime:kizunasync:todos"
  private static let close1 = #"["1","1","realtime:kizunasync:todos","phx_close",{}]"#

  @Test func aJoinIsAnsweredAndEntersTheRoom() {
    var script = SocketScript()
    #expect(script.send(Frames.join(Self.topic)) == [Frames.ok(Self.topic), "enter private kizunasync:todos"])
  }

  @Test func heartbeatsAreAnsweredWhateverTheirReference() {
    var script = SocketScript()
    #expect(
      script.send(#"[null,"7","phoenix","heartbeat",{}]"#)
        == [#"[null,"7","phoenix","phx_reply",{"response":{},"status":"ok"}]"#])
    #expect(
      script.send(#"[null,null,"phoenix","heartbeat",{}]"#)
        == [#"[null,null,"phoenix","phx_reply",{"response":{},"status":"ok"}]"#])
    #expect(
      script.send(#"[null,"9","phoenix","nonsense",{}]"#)
        == [#"[null,"9","phoenix","phx_reply",{"response":{"reason":"unmatched topic"},"status":"error"}]"#])
  }

  @Test(
    arguments: [
      ("realtime:", true, nil, "TopicNameRequired: You must provide a topic name"),
      (
        "realtime:kizunasync:todos", true, nil,
        "Unauthorized: You do not have permissions to read from this Channel topic: kizunasync:todos"
      ),
      (
        "realtime:forbidden:x", true, PlainVerifier.token(),
        "Unauthorized: You do not have permissions to read from this Channel topic: forbidden:x"
      ),
      ("realtime:a", true, "not-a-jwt", "MalformedJWT: The token provided is not a valid JWT"),
      ("realtime:a", true, "forged", "JwtSignatureError: Failed to validate JWT signature"),
      (
        "realtime:a", false, PlainVerifier.token(exp: 1_899_999_990),
        "InvalidJWTToken: Token has expired 10 seconds ago"
      ),
      (
        "realtime:a", false, PlainVerifier.token(exp: .min),
        "InvalidJWTToken: Token has expired \(Int64.max) seconds ago"
      ),
      (
        "realtime:a", true, PlainVerifier.token(exp: nil),
        "InvalidJWTToken: Fields `role` and `exp` are required in JWT"
      ),
      (
        "realtime:a", true, PlainVerifier.token(role: nil),
        "InvalidJWTToken: Fields `role` and `exp` are required in JWT"
      ),
    ] as [(String, Bool, String?, String)])
  func aRefusedJoinIsAnsweredAfterFiveSeconds(topic: String, isPrivate: Bool, token: String?, reason: String) {
    var script = SocketScript()
    #expect(script.send(Frames.join(topic, isPrivate: isPrivate, token: token)) == [])
    #expect(script.wait(.seconds(4.999)) == [])
    #expect(script.wait(.seconds(0.001)) == [Frames.refused(topic, reason)])
  }

  @Test func aTopicThatIsNotRealtimesIsRefusedAtOnce() {
    var script = SocketScript()
    #expect(
      script.send(Frames.join("other:room"))
        == [#"[null,"1","other:room","phx_reply",{"response":{"reason":"unmatched topic"},"status":"error"}]"#])
  }

  @Test func publicJoinsAreRefusedWhereOnlyPrivateOnesAreAllowed() {
    var script = SocketScript { $0.privateOnly = true }
    #expect(script.send(Frames.join("realtime:a", isPrivate: false)) == [])
    #expect(
      script.wait(.seconds(5))
        == [Frames.refused("realtime:a", "PrivateOnly: This project only allows private channels")])
  }

  @Test func theLimitOfChannelsIsPerSocket() {
    var script = SocketScript { $0.maximumChannelsPerSocket = 2 }
    _ = script.send(Frames.join("realtime:a", ref: "1", isPrivate: false))
    _ = script.send(Frames.join("realtime:b", ref: "2", isPrivate: false))
    #expect(script.send(Frames.join("realtime:c", ref: "3", isPrivate: false)) == [])
    #expect(
      script.wait(.seconds(5))
        == [Frames.refused("realtime:c", ref: "3", "ChannelRateLimitReached: Too many channels")])
  }

  @Test func everythingWaitsBehindARefusedJoin() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    #expect(script.send(Frames.join("realtime:forbidden:x", ref: "5")) == [])
    #expect(script.send(#"[null,"6","phoenix","heartbeat",{}]"#) == [])
    #expect(script.receive(.ping([1])) == [])
    let broadcast = RealtimeBroadcast.fromDatabase(
      topic: "kizunasync:todos", event: "changed", payload: ["t": "todos"], isPrivate: true, id: "x")
    #expect(script.receive(.broadcast(broadcast)) == [])
    #expect(
      script.wait(.seconds(5)) == [
        Frames.refused(
          "realtime:forbidden:x", ref: "5",
          "Unauthorized: You do not have permissions to read from this Channel topic: forbidden:x"),
        #"[null,"6","phoenix","phx_reply",{"response":{},"status":"ok"}]"#,
        "pong [1]",
        #"binary 69: realtime:kizunasync:todoschanged{"id":"x"}{"id":"x","t":"todos"}"#,
      ])
  }

  @Test func aSlowJoinBlocksTheSocketToo() {
    var script = SocketScript { $0.joinDelay = .seconds(15) }
    #expect(script.send(Frames.join(Self.topic)) == [])
    #expect(script.send(#"[null,"6","phoenix","heartbeat",{}]"#) == [])
    #expect(script.wait(.seconds(14)) == [])
    #expect(
      script.wait(.seconds(1)) == [
        Frames.ok(Self.topic), "enter private kizunasync:todos",
        #"[null,"6","phoenix","phx_reply",{"response":{},"status":"ok"}]"#,
      ])
  }

  @Test func theSecondJoinIsAnsweredBeforeTheFirstOneIsClosed() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic, ref: "1"))
    #expect(
      script.send(Frames.join(Self.topic, ref: "2")) == [
        "leave private kizunasync:todos", Frames.ok(Self.topic, ref: "2"), Self.close1,
        "enter private kizunasync:todos",
      ])
  }

  @Test func aRefusedSecondJoinEndsTheFirstOne() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic, ref: "1"))
    #expect(script.send(Frames.join(Self.topic, ref: "2", token: "forged")) == ["leave private kizunasync:todos"])
    #expect(
      script.wait(.seconds(5)) == [
        Frames.refused(Self.topic, ref: "2", "JwtSignatureError: Failed to validate JWT signature"), Self.close1,
      ])
    #expect(script.socket.channels.isEmpty)
  }

  // MARK: Leaving

  @Test func aLeaveWithTheCurrentReferenceIsAnsweredAndCloses() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    #expect(
      script.send(#"["1","4","realtime:kizunasync:todos","phx_leave",{}]"#) == [
        #"["1","4","realtime:kizunasync:todos","phx_reply",{"response":{},"status":"ok"}]"#,
        "leave private kizunasync:todos", Self.close1,
      ])
    // Left already: answered, and that is all.
    #expect(
      script.send(#"["1","5","realtime:kizunasync:todos","phx_leave",{}]"#)
        == [#"["1","5","realtime:kizunasync:todos","phx_reply",{"response":{},"status":"ok"}]"#])
  }

  @Test func aLeaveWithAnotherReferenceIsIgnored() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic, ref: "3"))
    #expect(script.send(#"["2","4","realtime:kizunasync:todos","phx_leave",{}]"#) == [])
    #expect(script.socket.channels.count == 1)
  }

  @Test func aPushToATopicThatIsNotJoinedIsRefused() {
    var script = SocketScript()
    let refusal =
      #"[null,"4","realtime:nowhere","phx_reply",{"response":{"reason":"unmatched topic"},"status":"error"}]"#
    #expect(
      script.send(#"["3","4","realtime:nowhere","broadcast",{"type":"broadcast","event":"x","payload":{}}]"#) == [
        refusal
      ])
    #expect(script.send(#"["3","4","realtime:nowhere","access_token",{"access_token":"x"}]"#) == [refusal])
  }

  // MARK: Broadcasts

  @Test func ownBroadcastsComeBackAndAreAcknowledgedWhereThatWasAsked() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic, broadcast: ["ack": true, "self": true]))
    #expect(
      script.send(
        #"["1","2","realtime:kizunasync:todos","broadcast",{"type":"broadcast","event":"hello","payload":{"x":1}}]"#)
        == [
          "publish kizunasync:todos also to sender",
          #"["1","2","realtime:kizunasync:todos","phx_reply",{"response":{},"status":"ok"}]"#,
        ])
  }

  @Test func withoutAckNothingIsAnswered() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    #expect(
      script.send(#"["1","2","realtime:kizunasync:todos","broadcast",{"type":"broadcast","event":"a","payload":{}}]"#)
        == ["publish kizunasync:todos"])
    #expect(script.send(#"["1","2","realtime:kizunasync:todos","broadcast","text"]"#) == [])
  }

  @Test func tooLargePushesAreRefusedByAText() {
    var script = SocketScript { $0.maximumPayloadBytes = 100 }
    _ = script.send(Frames.join(Self.topic, broadcast: ["ack": true]))
    let payload = String(repeating: "x", count: 200)
    #expect(
      script.send(#"["1","2","realtime:kizunasync:todos","broadcast",{"event":"a","payload":{"x":"\#(payload)"}}]"#)
        == [#"["1","2","realtime:kizunasync:todos","phx_reply",{"response":"payload_size_exceeded","status":"error"}]"#]
    )
  }

  @Test func aBroadcastForTheOtherRoomOfTheNameIsNotDelivered() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    let broadcast = RealtimeBroadcast.fromDatabase(
      topic: "kizunasync:todos", event: "changed", payload: [:], isPrivate: false, id: "x")
    #expect(script.receive(.broadcast(broadcast)) == [])
  }

  // MARK: Tokens

  @Test(arguments: [
    ("not-a-jwt", "The token provided is not a valid JWT"), ("", "The token provided is not a valid JWT"),
    ("forged", ":signature_error"), (PlainVerifier.token(exp: 1_899_999_990), "Token has expired 10 seconds ago"),
    (PlainVerifier.token(exp: nil), "Fields `role` and `exp` are required in JWT"),
    (
      PlainVerifier.token(role: "anon"),
      "You no longer have permission to read from this Channel topic: kizunasync:todos"
    ),
  ])
  func aBadNewTokenClosesTheChannel(token: String, message: String) {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    let payload = JSONWriter.text(["access_token": .string(token)])
    #expect(
      script.send(#"["1","2","realtime:kizunasync:todos","access_token",\#(payload)]"#) == [
        #"["1",null,"realtime:kizunasync:todos","system",{"channel":"kizunasync:todos","extension":"system","message":"\#(message)","status":"error"}]"#,
        "leave private kizunasync:todos", Self.close1,
      ])
  }

  @Test func someTokensAreIgnoredAndAGoodOneIsTakenInSilence() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    for payload in [
      #"{"access_token":null}"#, "{}", #"{"access_token":5}"#, #"{"access_token":"sb_x"}"#,
      JSONWriter.text(["access_token": .string(PlainVerifier.token())]),
      JSONWriter.text(["access_token": .string(PlainVerifier.token(sub: "u2"))]),
    ] {
      #expect(script.send(#"["1","2","realtime:kizunasync:todos","access_token",\#(payload)]"#) == [])
    }
    #expect(script.socket.channels.count == 1)
  }

  @Test func anExpiredTokenClosesItsChannelAndNoOther() {
    var script = SocketScript { $0.idleTimeout = .seconds(10_000) }
    _ = script.send(Frames.join("realtime:kizunasync:a", ref: "1", token: PlainVerifier.token(exp: 1_900_000_004)))
    _ = script.send(Frames.join("realtime:kizunasync:b", ref: "2"))
    #expect(script.wait(.seconds(3.9)) == [])
    #expect(
      script.wait(.seconds(0.2)) == [
        #"["1",null,"realtime:kizunasync:a","system",{"channel":"kizunasync:a","extension":"system","message":"Token has expired 0 seconds ago","status":"error"}]"#,
        "leave private kizunasync:a", #"["1","1","realtime:kizunasync:a","phx_close",{}]"#,
      ])
    #expect(script.wait(.seconds(5_000)) == [])
    #expect(Array(script.socket.channels.keys) == ["realtime:kizunasync:b"])
  }

  @Test func aTokenRefreshedInTimeKeepsTheChannel() {
    var script = SocketScript { $0.idleTimeout = .seconds(10_000) }
    _ = script.send(Frames.join(Self.topic, token: PlainVerifier.token(exp: 1_900_000_004)))
    _ = script.wait(.seconds(2))
    let payload = JSONWriter.text(["access_token": .string(PlainVerifier.token())])
    #expect(script.send(#"["1","2","realtime:kizunasync:todos","access_token",\#(payload)]"#) == [])
    #expect(script.wait(.seconds(600)) == [])
  }

  // MARK: Time

  @Test func aSilentClientIsClosedAtTheTickAfterAMinute() {
    var script = SocketScript()
    _ = script.wait(.seconds(2))
    _ = script.send(Frames.join(Self.topic))
    // 62 s after the last byte the tick at 66 s comes first.
    #expect(script.wait(.seconds(63.9)) == [])
    #expect(script.wait(.seconds(0.1)) == ["leave private kizunasync:todos", "close 1000"])
  }

  @Test func pingsKeepASocketOpen() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    for _ in 0..<20 {
      #expect(script.wait(.seconds(25)) == [])
      script.socket.bytesArrived(at: script.instant)
    }
  }

  @Test func aSocketThatLeftEverythingIsKilledAtTheSweep() {
    var script = SocketScript { $0.idleTimeout = .seconds(10_000) }
    _ = script.send(Frames.join(Self.topic))
    _ = script.wait(.seconds(100))
    _ = script.send(#"["1","4","realtime:kizunasync:todos","phx_leave",{}]"#)
    #expect(script.wait(.seconds(499)) == [])
    #expect(script.wait(.seconds(1)) == ["kill"])
  }

  @Test func readinessIsAnnouncedWhereItWasAskedFor() {
    var script = SocketScript { $0.replicationReadyDelay = .seconds(3) }
    _ = script.send(Frames.join(Self.topic, broadcast: ["replication_ready": true]))
    #expect(script.wait(.seconds(2.9)) == [])
    #expect(
      script.wait(.seconds(0.1)) == [
        #"["1",null,"realtime:kizunasync:todos","system",{"channel":"kizunasync:todos","extension":"system","message":"Replication connection established","status":"ok"}]"#
      ])
  }

  // MARK: The server ends it

  @Test func aDisconnectIsAnnouncedOnEveryChannel() {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    #expect(
      script.receive(.disconnect(code: 1012, announced: true)) == [
        #"[null,null,"realtime:kizunasync:todos","system",{"extension":"system","message":"Server requested disconnect","status":"ok"}]"#,
        "leave private kizunasync:todos", "close 1012",
      ])
    #expect(script.send(#"[null,"6","phoenix","heartbeat",{}]"#) == [])
  }

  // MARK: What cannot be read

  @Test(arguments: [
    "", "null", "[]", "{}", "[1,2,3]", #"[null,"1","phoenix","heartbeat"]"#, "not json", #"{"topic":"phoenix"}"#,
    #"["1","2","realtime:kizunasync:todos","nonsense",{"a":1}]"#,
  ])
  func isDroppedInSilence(text: String) {
    var script = SocketScript()
    _ = script.send(Frames.join(Self.topic))
    #expect(script.send(text) == [])
    #expect(script.receive(.message(.binary([9, 1, 2]))) == [])
    #expect(script.send(#"[null,"6","phoenix","heartbeat",{}]"#).count == 1)
  }
}
