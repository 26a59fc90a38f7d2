import HTTPClient
import HostKit
import PhoenixChannels
import SupabaseRealtime
import Testing

@testable import LocalStack

/// The hub over real sockets, with the real client transport at the other end.
@Suite(.timeLimit(.minutes(5)))
struct RealtimeHubTests {
  private static let topic = "realtime:kizunasync:todos"

  private func withStack(
    _ change: @Sendable (inout RealtimeSettings) -> Void = { _ in },
    _ body: (StackAssembly) async throws -> Void
  ) async throws {
    var rules = RealtimeSocket.Rules(verifier: PlainVerifier())
    rules.settings.connectErrorBackoff = .milliseconds(20)
    rules.settings.channelErrorBackoff = .milliseconds(20)
    change(&rules.settings)
    let stack = try await StackAssembly.start(StackServer.Options(), rules: rules) { _ in EchoHandler() }
    do {
      try await body(stack)
    } catch {
      await stack.stop()
      throw error
    }
    await stack.stop()
  }

  @Test(arguments: PhoenixVersion.allCases, ["/realtime/v1/websocket", "/socket/websocket"])
  func aChannelIsJoinedAndRung(version: PhoenixVersion, path: String) async throws {
    try await withStack { stack in
      let client = HubClient(stack, version, path: path)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      let count = await stack.hub.sendFromDatabase(
        topic: "kizunasync:todos", event: "changed", payload: ["t": "todos"])
      #expect(count == 1)
      let frame = await client.frame()
      let broadcast = frame?.userBroadcast
      #expect(broadcast?.event == "changed")
      guard case .json(let payload) = broadcast?.content else {
        Issue.record("no JSON")
        return
      }
      #expect(payload["t"] == "todos")
      #expect(payload["id"] == broadcast?.meta?["id"])
      // Binary for 2.0.0, text for 1.0.0.
      if case .broadcast = frame?.payload { #expect(version == .v2) } else { #expect(version == .v1) }
      client.close()
      #expect(await client.next() == .ended("closed 1000"))
    }
  }

  /// Realtime wire contract §7.3: who gets what, by the version of the receiver.
  @Test func everyKindOfBroadcastReachesTheVersionsThatUnderstandIt() async throws {
    try await withStack { stack in
      let old = HubClient(stack, .v1)
      let new = HubClient(stack, .v2)
      let sender = HubClient(stack, .v2)
      for client in [old, new, sender] {
        #expect(await client.next() == .opened)
        #expect(await client.joined(Self.topic))
      }
      let text: JSONValue = ["type": "broadcast", "event": "text", "payload": ["n": 1]]
      sender.send(PhoenixFrame(joinRef: "1", ref: "2", topic: Self.topic, event: "broadcast", text))
      #expect(await old.frame() == PhoenixFrame(topic: Self.topic, event: "broadcast", text))
      #expect(await new.frame() == PhoenixFrame(topic: Self.topic, event: "broadcast", text))

      let json = UserBroadcast(event: "json", content: .json(["n": 2]))
      sender.send(
        PhoenixFrame(joinRef: "1", ref: "3", topic: Self.topic, event: "broadcast", payload: .broadcast(json)))
      #expect(
        await old.frame()
          == PhoenixFrame(
            topic: Self.topic, event: "broadcast", ["type": "broadcast", "event": "json", "payload": ["n": 2]]))
      #expect(await new.frame() == PhoenixFrame(topic: Self.topic, event: "broadcast", payload: .broadcast(json)))

      let bytes = UserBroadcast(event: "bytes", content: .bytes([0, 255]))
      sender.send(
        PhoenixFrame(joinRef: "1", ref: "4", topic: Self.topic, event: "broadcast", payload: .broadcast(bytes)))
      #expect(await new.frame() == PhoenixFrame(topic: Self.topic, event: "broadcast", payload: .broadcast(bytes)))
      // Nothing came to the old one in between.
      old.send(PhoenixFrame(ref: "9", topic: "phoenix", event: "heartbeat", [:]))
      #expect(await old.frame()?.ref == "9")
    }
  }

  @Test func ownMessagesComeBackBeforeTheAcknowledgement() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic, broadcast: ["ack": true, "self": true]))
      client.send(
        PhoenixFrame(
          joinRef: "1", ref: "2", topic: Self.topic, event: "broadcast",
          ["type": "broadcast", "event": "a", "payload": [:]]))
      #expect(await client.frame()?.event == "broadcast")
      #expect(await client.frame()?.ref == "2")
    }
  }

  @Test func publicAndPrivateRoomsNeverMeet() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic, isPrivate: false))
      #expect(await stack.hub.sendFromDatabase(topic: "kizunasync:todos", event: "x", payload: [:]) == 0)
      #expect(
        await stack.hub.sendFromDatabase(topic: "kizunasync:todos", event: "x", payload: [:], isPrivate: false) == 1)
      #expect(await client.frame()?.userBroadcast?.event == "x")
    }
  }

  @Test(arguments: [
    ("", #"refused 401 {"error":"API key is missing"}"#),
    ("garbage", #"refused 401 {"error":"The token provided is not a valid JWT"}"#),
    ("forged", #"refused 401 {"error":"Failed to validate JWT signature"}"#),
    (PlainVerifier.token(exp: 1), #"refused 401 {"error":"Token has expired"}"#),
  ])
  func aBadKeyIsRefusedWithItsReason(key: String, end: String) async throws {
    try await withStack { stack in
      #expect(await HubClient(stack, key: key).next() == .ended(end))
    }
  }

  @Test func pingsAreAnswered() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      client.ping()
      #expect(await client.next() == .pong)
    }
  }

  @Test func anOversizedMessageIsClosedWith1009() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      client.sendRaw(.text(String(repeating: "x", count: 5_000_001)))
      #expect(await client.next() == .ended("closed 1009"))
    }
  }

  @Test func silenceEndsTheSocketWith1000() async throws {
    try await withStack { settings in
      settings.idleTimeout = .milliseconds(60)
      settings.idleCheckInterval = .milliseconds(6)
    } _: { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.next() == .ended("closed 1000"))
    }
  }

  @Test func aDrainClosesWith1012AndRefusesJoins() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      await stack.hub.setRules { $0.isRestarting = true }
      client.join("realtime:kizunasync:other", ref: "2")
      #expect(
        await client.frame()?.json?["response"]?["reason"]
          == "RealtimeRestarting: Realtime is restarting, please standby")
      await stack.hub.disconnectAll(code: 1012, announced: true)
      #expect(await client.frame()?.json?["message"] == "Server requested disconnect")
      // libwebsockets does not tell this code.
      #expect(await client.next() == .ended("closed -"))
      #expect(await stack.hub.socketCount == 0)
    }
  }

  @Test(arguments: [true, false])
  func droppedSocketsAreLostWithoutAClose(reset: Bool) async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      await stack.hub.dropAll(reset: reset)
      #expect(await client.next() == .ended("failed connectionLost"))
      #expect(await stack.hub.memberCount(of: RealtimeRoom(topic: "kizunasync:todos", isPrivate: true)) == 0)
    }
  }

  @Test func upgradesCanBeRefusedOnDemand() async throws {
    try await withStack { stack in
      await stack.hub.setFaults {
        $0.upgrade = .refuse(.json(["error": "Tenant not found"], status: 404), after: 0)
      }
      #expect(await HubClient(stack).next() == .ended(#"refused 404 {"error":"Tenant not found"}"#))
      await stack.hub.setFaults { $0.upgrade = nil }
      #expect(await HubClient(stack).next() == .opened)
    }
  }

  @Test func aSilentServerAnswersNothingUntilItWakes() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      await stack.hub.setFaults { $0.isSilent = true }
      client.send(PhoenixFrame(ref: "lost", topic: "phoenix", event: "heartbeat", [:]))
      while await stack.hub.swallowedMessages == 0 { await Task.yield() }
      await stack.hub.setFaults { $0.isSilent = false }
      client.send(PhoenixFrame(ref: "heard", topic: "phoenix", event: "heartbeat", [:]))
      #expect(await client.frame()?.ref == "heard")
    }
  }

  @Test func messagesOfADatabaseThatIsAwayAreLost() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      await stack.hub.setFaults { $0.losesDatabaseMessages = true }
      #expect(await stack.hub.sendFromDatabase(topic: "kizunasync:todos", event: "a", payload: [:]) == 0)
      await stack.hub.setFaults { $0.losesDatabaseMessages = false }
      #expect(await stack.hub.sendFromDatabase(topic: "kizunasync:todos", event: "b", payload: [:]) == 1)
      #expect(await client.frame()?.userBroadcast?.event == "b")
    }
  }

  // MARK: Broadcasts by HTTP

  /// The status alone; nil when no answer came.
  private func status(
    _ stack: StackAssembly, _ path: String, _ body: String, token: String? = PlainVerifier.token(),
    type: String = "application/json"
  ) async -> Int? {
    try? await post(stack, path, body, token: token, type: type).status
  }

  private func post(
    _ stack: StackAssembly, _ path: String, _ body: String, token: String? = PlainVerifier.token(),
    type: String = "application/json"
  ) async throws -> HTTPResponse {
    var headers = [HTTPHeader("content-type", type)]
    if let token { headers.append(HTTPHeader("authorization", "Bearer \(token)")) }
    return try await CurlHTTPClient().send(
      HTTPRequest(
        method: "POST", url: "http://127.0.0.1:\(stack.server.port)\(path)", headers: headers, body: Array(body.utf8)))
  }

  @Test func manyMessagesAreSentAtOnce() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      let answer = try await post(
        stack, "/realtime/v1/api/broadcast",
        #"{"messages":[{"topic":"kizunasync:todos","event":"changed","payload":{"b":2},"private":true}]}"#)
      #expect(answer.status == 202)
      #expect(answer.body.isEmpty)
      #expect(
        await client.frame()
          == PhoenixFrame(
            topic: Self.topic, event: "broadcast", ["type": "broadcast", "event": "changed", "payload": ["b": 2]]))
    }
  }

  /// Realtime wire contract §18: HTTP names the topic without the prefix that frames need. With it the message is
  /// accepted all the same, and goes to a room where nobody is.
  @Test func d28_theTopicOfHTTPHasNoPrefix() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      for (topic, event) in [("realtime:kizunasync:todos", "lost"), ("kizunasync:todos", "heard")] {
        let body = #"{"messages":[{"topic":"\#(topic)","event":"\#(event)","payload":{},"private":true}]}"#
        #expect(await status(stack, "/realtime/v1/api/broadcast", body) == 202)
      }
      #expect(await client.frame()?.json?["event"] == "heard")
      #expect(Self.topic == "realtime:kizunasync:todos")
    }
  }

  @Test func aSingleMessageArrivesBinary() async throws {
    try await withStack { stack in
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      let path = "/api/broadcast/kizunasync:todos/events/a%20b?private=true"
      #expect(await status(stack, path, #"{"n":1}"#) == 202)
      #expect(
        await client.frame()
          == PhoenixFrame(
            topic: Self.topic, event: "broadcast",
            payload: .broadcast(UserBroadcast(event: "a b", content: .json(["n": 1])))))
      #expect(await status(stack, path, "x", type: "text/plain") == 415)
      #expect(await status(stack, path, "{}", token: PlainVerifier.token(role: "anon")) == 403)
    }
  }

  @Test func messagesTheTokenMayNotWriteAreDroppedAndStillAccepted() async throws {
    try await withStack { stack in
      let body = #"{"messages":[{"topic":"kizunasync:todos","event":"x","payload":{},"private":true}]}"#
      let client = HubClient(stack)
      #expect(await client.next() == .opened)
      #expect(await client.joined(Self.topic))
      #expect(await status(stack, "/api/broadcast", body, token: PlainVerifier.token(role: "anon")) == 202)
      client.send(PhoenixFrame(ref: "9", topic: "phoenix", event: "heartbeat", [:]))
      #expect(await client.frame()?.ref == "9")
    }
  }

  @Test func aBadHTTPBroadcastIsRefused() async throws {
    try await withStack { stack in
      let path = "/realtime/v1/api/broadcast"
      #expect(await status(stack, path, "{}", token: nil) == 401)
      #expect(await status(stack, path, "{}", token: PlainVerifier.token(exp: 1)) == 401)
      #expect(await status(stack, path, "{") == 400)
      let incomplete = try await post(stack, path, #"{"messages":[{"topic":"kizunasync:todos"}]}"#)
      #expect(incomplete.status == 422)
      #expect(
        String(decoding: incomplete.body, as: UTF8.self)
          == #"{"errors":{"messages":[{"event":["can't be blank"],"payload":["can't be blank"]}]}}"#)
    }
  }
}
