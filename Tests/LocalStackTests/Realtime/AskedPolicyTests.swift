import HostKit
import PhoenixChannels
import Testing

@testable import LocalStack

/// A policy that has to be asked, as that of a database: the socket is one queue, and waits for the answer.
@Suite struct AskedPolicyTests {
  private static let topic = "realtime:kizunasync:todos"
  private static let room = "kizunasync:todos"
  private static let heartbeat = #"[null,"7","phoenix","heartbeat",{}]"#
  private static let answered = #"[null,"7","phoenix","phx_reply",{"response":{},"status":"ok"}]"#
  private static let push = #"["1","5","realtime:kizunasync:todos","broadcast",{"type":"broadcast","event":"e"}]"#

  private let claims: JSONValue

  private static func renewal(_ token: String) -> String {
    JSONWriter.text(["1", "6", .string(topic), "access_token", ["access_token": .string(token)]])
  }

  init() throws {
    claims = try PlainVerifier().claims(of: PlainVerifier.token())
  }

  private func script() -> SocketScript {
    SocketScript(policy: RealtimePolicy { _ in .denied })
  }

  private func joined() -> SocketScript {
    var script = script()
    #expect(script.send(Frames.join(Self.topic)) == ["ask read kizunasync:todos authenticated"])
    #expect(
      script.decide(.allowed, .read, Self.room, claims: claims)
        == [Frames.ok(Self.topic), "enter private kizunasync:todos"])
    return script
  }

  @Test func everythingWaitsForTheAnswer() {
    var script = script()
    #expect(script.send(Frames.join(Self.topic)) == ["ask read kizunasync:todos authenticated"])
    #expect(script.send(Self.heartbeat) == [])
    #expect(script.wait(.seconds(30)) == [])
    #expect(
      script.decide(.allowed, .read, Self.room, claims: claims)
        == [Frames.ok(Self.topic), "enter private kizunasync:todos", Self.answered])
    // An answer that nobody waits for changes nothing.
    #expect(script.decide(.allowed, .read, Self.room, claims: claims) == [])
  }

  @Test(arguments: [
    (
      RealtimeDecision.denied,
      "Unauthorized: You do not have permissions to read from this Channel topic: kizunasync:todos"
    ),
    (.unavailable, "UnableToConnectToProject: Realtime was unable to connect to the project database"),
  ])
  func aRefusalIsAnsweredAfterFiveSeconds(decision: RealtimeDecision, reason: String) {
    var script = script()
    _ = script.send(Frames.join(Self.topic))
    #expect(script.decide(decision, .read, Self.room, claims: claims) == [])
    #expect(script.wait(.seconds(5)) == [Frames.refused(Self.topic, reason)])
    // The next join asks again.
    #expect(script.send(Frames.join(Self.topic, ref: "2")) == ["ask read kizunasync:todos authenticated"])
  }

  @Test func publicTopicsAskNobody() {
    var script = script()
    #expect(
      script.send(Frames.join("realtime:a", isPrivate: false)) == [Frames.ok("realtime:a"), "enter public a"])
  }

  @Test func mayWriteIsAskedOnceForAToken() throws {
    var script = joined()
    #expect(script.send(Self.push) == ["ask write kizunasync:todos authenticated"])
    #expect(script.decide(.allowed, .write, Self.room, claims: claims) == ["publish kizunasync:todos"])
    #expect(script.send(Self.push) == ["publish kizunasync:todos"])

    let token = PlainVerifier.token(exp: 1_999_999_999)
    let other = try PlainVerifier().claims(of: token)
    #expect(script.send(Self.renewal(token)) == ["ask read kizunasync:todos authenticated"])
    #expect(script.decide(.allowed, .read, Self.room, claims: other) == [])
    #expect(script.send(Self.push) == ["ask write kizunasync:todos authenticated"])
    #expect(script.decide(.denied, .write, Self.room, claims: other) == [])
    #expect(script.send(Self.push) == [], "a push without permission vanishes")
  }

  @Test(arguments: [
    (RealtimeDecision.denied, "You no longer have permission to read from this Channel topic: kizunasync:todos"),
    (.unavailable, "Realtime was unable to connect to the project database"),
  ])
  func aTokenThatMayNotReadEndsTheChannel(decision: RealtimeDecision, message: String) throws {
    var script = joined()
    let token = PlainVerifier.token(exp: 1_999_999_999)
    #expect(script.send(Self.renewal(token)) == ["ask read kizunasync:todos authenticated"])
    let lines = script.decide(decision, .read, Self.room, claims: try PlainVerifier().claims(of: token))
    #expect(lines.count == 3)
    #expect(lines.first?.contains(message) == true)
    #expect(
      lines.dropFirst() == ["leave private kizunasync:todos", #"["1","1","realtime:kizunasync:todos","phx_close",{}]"#])
  }

  @Test func aSecondJoinKeepsTheFirstUntilItIsDecided() {
    var script = joined()
    #expect(script.send(Frames.join(Self.topic, ref: "2")) == ["ask read kizunasync:todos authenticated"])
    #expect(
      script.decide(.allowed, .read, Self.room, claims: claims) == [
        "leave private kizunasync:todos", Frames.ok(Self.topic, ref: "2"),
        #"["1","1","realtime:kizunasync:todos","phx_close",{}]"#, "enter private kizunasync:todos",
      ])
  }
}
