import HostKit
import PhoenixChannels
import Testing

/// Realtime wire contract §18, kinds B, C, F, J and N: joins, stale frames, subscribers.
@Suite struct JoinDefectTests {
  @Test func d05_noTopicStaysJoinedWithoutItsTransport() {
    var driver = MachineDriver.joined(topics: ["a", "b", "c"])
    let first = Set(driver.joins().compactMap(\.ref))
    driver.forget()
    driver.feed(.failed("reset", isConfiguration: false))
    #expect(driver.status.topics.allSatisfy { $0.state == .idle })
    driver.advance(1)
    driver.feed(.opened)
    #expect(!driver.status.isReady)
    driver.accept("a")
    driver.accept("b")
    #expect(!driver.status.isReady)
    driver.accept("c")
    #expect(driver.status.isReady)
    #expect(driver.joins().map(\.topic).sorted() == ["realtime:a", "realtime:b", "realtime:c"])
    #expect(first.isDisjoint(with: driver.joins().compactMap(\.ref)))
    #expect(driver.rules.violations == [])
  }

  @Test func d06_theRejoinLooksLikeTheFirstJoin() throws {
    var driver = MachineDriver.joined(credentials: "token-0")
    for round in 1...10 {
      driver.feed(.failed("reset", isConfiguration: false))
      driver.feed(.credentials(.token("token-\(round)")))
      driver.advance(30)
      driver.feed(.opened)
      driver.acceptJoins()
    }
    let payloads = try driver.joins().map { try #require($0.json) }
    #expect(payloads.count == 11)
    #expect(payloads.map { $0["access_token"] } == (0...10).map { .string("token-\($0)") })
    #expect(Set(payloads.map { $0["config"] }).count == 1)
    #expect(payloads[0]["config"]?["private"] == true)
    // No null member anywhere: the server takes it for a bad type.
    #expect(!payloads[0].description.contains("null"))
  }

  /// ok(2), close(1) and error(1) in every order, in both protocol versions.
  @Test(arguments: PhoenixVersion.allCases)
  func d07_framesOfAnEarlierJoinChangeNothing(version: PhoenixVersion) throws {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
      var driver = MachineDriver.joined()
      let first = try #require(driver.joinRef("a"))
      driver.unsubscribe("a")
      driver.subscribe("a")
      let second = try #require(driver.joinRef("a"))
      #expect(first != second)
      let joinRef: (String) -> String? = { version == .v2 ? $0 : nil }
      let frames = [
        PhoenixFrame(
          joinRef: joinRef(second), ref: second, topic: "realtime:a", event: "phx_reply",
          ["status": "ok", "response": [:]]),
        PhoenixFrame(joinRef: joinRef(first), ref: first, topic: "realtime:a", event: "phx_close", [:]),
        PhoenixFrame(joinRef: joinRef(first), ref: first, topic: "realtime:a", event: "phx_error", [:]),
      ]
      driver.forget()
      for index in order { driver.receive(frames[index]) }
      #expect(driver.state("a") == .joined, "order \(order)")
      #expect(driver.joins().isEmpty)
      driver.advanceAnswering(120)
      #expect(driver.joins().isEmpty)
      #expect(driver.rules.violations == [])
    }
  }

  @Test func d15_aRefusedJoinIsSeenAtOnce() {
    var driver = MachineDriver.open()
    driver.refuse("a", "UnableToConnectToProject: Realtime was unable to connect to the project database")
    #expect(driver.state("a") == .backingOff(until: driver.now + .seconds(1)))
    #expect(driver.status.topics[0].lastFailure?.text.hasPrefix("UnableToConnectToProject") == true)
  }

  @Test func d15_unauthorizedIsDeniedAndProbedSlowly() {
    var driver = MachineDriver.open()
    let reason = "Unauthorized: You do not have permissions to read from this Channel topic: a"
    driver.refuse("a", reason)
    #expect(driver.state("a") == .denied(reason: "Unauthorized: You do not have permissions to read"))
    driver.forget()
    driver.advanceAnswering(3_600)
    // Once in 5 min ± 50 %; each probe that is not answered here counts as a failed join, so only the first matters.
    driver.forget()
    #expect(driver.rules.violations == [])

    driver = MachineDriver.open()
    driver.refuse("a", reason)
    driver.forget()
    driver.advanceAnswering(140)
    #expect(driver.joins().isEmpty)
    driver.advanceAnswering(320)
    #expect(driver.joins().count == 1)
  }

  @Test func d15_deniedTopicsTryANewToken() {
    var driver = MachineDriver.open(credentials: "weak")
    driver.refuse("a", "Unauthorized: no")
    driver.forget()
    driver.feed(.credentials(.token("strong")))
    #expect(driver.joins().map { $0.json?["access_token"] } == ["strong"])
  }

  @Test func d16_aCrashedChannelRejoins() {
    var driver = MachineDriver.joined(topics: ["a", "b"])
    driver.forget()
    driver.receive("phx_error", "a", joinRef: "1", ref: "1", ["reason": "channel_crash"])
    #expect(driver.state("a") == .backingOff(until: driver.now + .seconds(1)))
    #expect(driver.state("b") == .joined)
    driver.advance(1)
    driver.accept("a")
    #expect(driver.state("a") == .joined)
    #expect(driver.rings.count == 1)

    // While joining it fails that join at once.
    var joining = MachineDriver.open()
    let ref = joining.joinRef("a")
    joining.receive("phx_error", "a", joinRef: ref, ref: ref)
    #expect(joining.state("a") == .backingOff(until: joining.now + .seconds(1)))
    #expect(joining.rules.violations == [])
  }

  @Test func d17_theReplyEndsTheDeadline() {
    var driver = MachineDriver.joined()
    driver.forget()
    driver.advanceAnswering(3_600)
    #expect(driver.joins().isEmpty)
    #expect(driver.sent("phx_leave").isEmpty)
    #expect(driver.status.isReady)
  }

  @Test func d22_oddReplies() {
    var driver = MachineDriver.open()
    let ref = driver.joinRef("a") ?? ""
    for response: JSONValue in [nil, "text", 5, [], ["x": 1]] {
      driver.receive("phx_reply", "a", ref: "999", ["status": "ok", "response": response])
      driver.receive("phx_reply", "a", ["status": "ok", "response": response])
      driver.receive("phx_reply", "elsewhere", ref: ref, ["status": "ok", "response": response])
      driver.receive("phx_reply", "a", joinRef: "999", ref: ref, response)
      driver.receive(PhoenixFrame(ref: "999", topic: "phoenix", event: "phx_reply", response))
    }
    #expect(driver.state("a") == .joining)
    #expect(driver.status.counters.framesUnmatched == 25)
    driver.reply("a", ref: ref, "ok", nil)
    driver.reply("a", ref: ref, "error", "again")
    #expect(driver.state("a") == .joined)
    #expect(driver.status.counters.framesUnmatched == 26)

    // An error may say why in any shape.
    for response: JSONValue in [nil, "payload_size_exceeded", 5, [], ["reason": 7]] {
      var refused = MachineDriver.open()
      refused.reply("a", ref: refused.joinRef("a") ?? "", "error", response)
      #expect(refused.state("a") == .backingOff(until: refused.now + .seconds(1)))
    }
  }

  @Test func d26_cancellingOneSubscriptionLeavesTheOthersAlone() {
    let states: [(String, (inout MachineDriver) -> Void)] = [
      ("idle", { _ in }), ("joined", { $0.acceptJoins() }),
      ("backing off", { $0.refuse("a", "UnableToConnectToProject: x") }),
      ("denied", { $0.refuse("a", "Unauthorized: x") }),
      (
        "without a transport",
        {
          $0.acceptJoins()
          $0.feed(.failed("reset", isConfiguration: false))
        }
      ),
    ]
    for (name, prepare) in states {
      var driver = MachineDriver.open(topics: ["a", "b", "c"])
      prepare(&driver)
      let before = driver.status.topics.filter { $0.topic.name != "a" }
      driver.forget()
      driver.unsubscribe("a")
      let after = driver.status.topics
      #expect(after.map(\.topic.name) == ["b", "c"], "\(name)")
      // One of the others may have become the next to join; none falls back.
      for (old, new) in zip(before, after) where old.state != new.state {
        #expect(old.state == .idle && new.state == .joining, "\(name)")
      }
      #expect(driver.closes == 0, "\(name)")
      if driver.status.state != .open {
        driver.advance(30)
        driver.feed(.opened)
      }
      driver.acceptJoins()
      #expect(driver.status.isReady, "\(name)")
      #expect(driver.rules.violations == [], "\(name)")
    }
  }

  @Test func d26_comingBackDuringTheDelayJoinsOnce() {
    var driver = MachineDriver.open()
    driver.refuse("a", "UnableToConnectToProject: x")
    driver.unsubscribe("a")
    driver.subscribe("a")
    driver.acceptJoins()
    driver.forget()
    driver.advanceAnswering(60)
    #expect(driver.joins().isEmpty)
    #expect(driver.status.isReady)
  }

  @Test func d27_theLastSubscriberLeaves() throws {
    var driver = MachineDriver.joined()
    driver.subscribe("a")
    #expect(driver.joins().count == 1)
    driver.unsubscribe("a")
    #expect(driver.sent("phx_leave").isEmpty)
    driver.unsubscribe("a")
    let leave = try #require(driver.sent("phx_leave").first)
    #expect(driver.sent("phx_leave").count == 1)
    #expect(leave.joinRef == driver.joinRef("a"))
    #expect(leave.ref != leave.joinRef)
    // One too many is no harm.
    driver.unsubscribe("a")
    #expect(driver.sent("phx_leave").count == 1)
    // The connection is closed when it has been of no use for a while.
    driver.advanceAnswering(29)
    #expect(driver.closes == 0)
    driver.advance(2)
    #expect(driver.closes == 1)
    driver.feed(.closed(code: 1000, reason: ""))
    #expect(driver.status.state == .disconnected)
    #expect(driver.timers.isEmpty)
    driver.subscribe("a")
    #expect(driver.status.state == .connecting)
  }

  @Test func d32_failingJoinsAlwaysBackOff() {
    var driver = MachineDriver.open()
    let chance = Locked(SeededRandom(32))
    driver.jitter = { chance.withLock { $0.unit() } }
    var lastJoin = driver.now
    var refusals = 0
    let end = driver.now + .seconds(3_600)
    while driver.now < end {
      if driver.state("a") == .joining {
        if refusals > 0 { #expect(driver.now >= lastJoin + .milliseconds(500)) }
        driver.refuse("a", "Unknown Error on Channel")
        #expect(driver.state("a") != .joining)
        lastJoin = driver.now
        refusals += 1
      }
      if driver.status.state == .connecting { driver.feed(.opened) }
      if driver.closes > 0 {
        driver.feed(.closed(code: 1000, reason: ""))
        driver.forget()
      }
      driver.advance(0.25)
      if !driver.sent("heartbeat").isEmpty {
        driver.answerHeartbeat()
        driver.forget()
      }
    }
    // Capped at 30 s, drawn from the upper half.
    #expect(refusals > 3_600 / 30 && refusals < 3_600 / 15 + 20)
    // The connection was replaced, at most once in ten minutes.
    #expect((1...6).contains(driver.status.counters.socketsReplaced))
    driver.unsubscribe("a")
    #expect(driver.status.topics.isEmpty)
    #expect(driver.rules.violations == [])
  }

  @Test func d32_hundredThousandRefusalsStayFlat() {
    var machine = ConnectionMachine(MachineDriver.open().machine.policy)
    var now: UInt64 = .seconds(1)
    var timers: [TimerToken: UInt64] = [:]
    var joinRef: String?
    var heartbeatRef: String?
    var isConnecting = false
    var transport: TransportID?
    func feed(_ event: ConnectionEvent) {
      for effect in machine.handle(event, now: now, jitter: { 0.5 }) {
        switch effect {
        case .schedule(let token, let at): timers[token] = at
        case .cancel(let token): timers[token] = nil
        case .connect(let id):
          transport = id
          isConnecting = true
        case .send(_, let frame):
          if frame.event == "phx_join" { joinRef = frame.ref }
          if frame.event == "heartbeat" { heartbeatRef = frame.ref }
        default: break
        }
      }
    }
    feed(.subscribe(MachineDriver.topic("a")))
    feed(.start)
    var refusals = 0
    while refusals < 100_000 {
      if let ref = joinRef, let id = transport {
        joinRef = nil
        refusals += 1
        let reply = PhoenixFrame(
          joinRef: ref, ref: ref, topic: "realtime:a", event: "phx_reply",
          ["status": "error", "response": ["reason": "MusterJoinError: x"]])
        feed(.transport(id, .frame(.success(reply), receivedAt: 0)))
      } else if isConnecting, let id = transport {
        isConnecting = false
        feed(.transport(id, .opened))
      } else if let next = timers.min(by: { $0.value < $1.value }) {
        timers[next.key] = nil
        now = max(now, next.value)
        feed(.timer(next.key))
        if let ref = heartbeatRef, let id = transport {
          heartbeatRef = nil
          let reply = PhoenixFrame(ref: ref, topic: "phoenix", event: "phx_reply", ["status": "ok"])
          feed(.transport(id, .frame(.success(reply), receivedAt: 0)))
        }
      }
    }
    #expect(timers.count < 8)
    #expect(machine.status.counters.joinsRefused == 100_000)
    #expect(MemoryLayout.size(ofValue: machine) < 4_096)
  }

  @Test func d34_aSlowHandshakeIsFollowedByOneJoin() {
    var driver = MachineDriver(
      {
        var policy = ConnectionPolicy()
        policy.usesCredentials = false
        policy.handshakeDeadline = .seconds(90)
        return policy
      }())
    driver.subscribe("a")
    driver.feed(.start)
    driver.advance(60)
    #expect(driver.joins().isEmpty)
    let opened = driver.now
    driver.feed(.opened)
    #expect(driver.joins().count == 1)
    let deadline = driver.timers.first { $0.token.kind == .join(MachineDriver.topic("a")) }?.at
    #expect(deadline == opened + .seconds(25))
    #expect(driver.rules.violations == [])
  }
}
