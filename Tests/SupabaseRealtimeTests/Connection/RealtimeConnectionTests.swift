import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import SupabaseRealtime
import Testing

@Suite struct RealtimeConnectionTests {
  @Test(arguments: PhoenixVersion.allCases)
  func aBroadcastRingsWithItsTime(version: PhoenixVersion) async throws {
    let fixture = try ConnectionFixture(version: version)
    let subscription = try fixture.listen("kizunasync:todos")
    fixture.connection.start()
    await fixture.clock.settle()
    #expect(fixture.connection.status.isReady)
    #expect(fixture.rings.map(\.cause) == [.joined])

    let before = SystemClock.monotonic
    fixture.transport.broadcast("kizunasync:todos", event: "changed", payload: ["t": "todos"])
    await fixture.clock.settle()
    let ring = try #require(fixture.rings.last)
    #expect(ring.topics == ["kizunasync:todos"])
    #expect(ring.cause == .broadcast(event: "changed"))
    #expect(ring.receivedAt >= before && ring.receivedAt <= SystemClock.monotonic)
    subscription.cancel()
  }

  @Test func ringsAreDeliveredOnTheTransportsThread() async throws {
    let fixture = try ConnectionFixture()
    let executor = fixture.transport.executor
    let onThread = Locked<[Bool?]>([])
    let subscription = try fixture.connection.subscribe(topics: ["a"]) { _ in
      onThread.withLock { $0.append(executor.isIsolatingCurrentContext()) }
    }
    fixture.connection.start()
    await fixture.clock.settle()
    #expect(onThread.withLock { $0 } == [true])
    subscription.cancel()
  }

  @Test func theJoinLooksAsTheContractSays() async throws {
    let fixture = try ConnectionFixture(credentials: ScriptedCredentials(.token("user-token")))
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.settle()
    let join = try #require(fixture.transport.sent("phx_join").first)
    #expect(join.topic == "realtime:a")
    #expect(join.joinRef == join.ref)
    #expect(
      join.json == [
        "config": [
          "broadcast": ["ack": false, "self": false, "replication_ready": true], "presence": ["enabled": false],
          "postgres_changes": [], "private": true,
        ], "access_token": "user-token",
      ])
    subscription.cancel()
  }

  /// D27: one channel for several subscribers; the last one leaves it.
  @Test func subscribersShareAChannel() async throws {
    let (fixture, first) = try await ConnectionFixture.joined("a")
    let second = try fixture.listen("a", "b")
    await fixture.clock.settle()
    #expect(fixture.transport.sent("phx_join").map(\.topic) == ["realtime:a", "realtime:b"])
    // The join of "a" was before the second subscriber's time, so it is rung for it on its own.
    #expect(fixture.rings.map(\.topics) == [["a"], ["a"], ["b"]])

    first.cancel()
    await fixture.clock.settle()
    #expect(fixture.transport.sent("phx_leave").isEmpty)
    fixture.transport.broadcast("a")
    await fixture.clock.settle()
    #expect(fixture.rings.count == 4)

    second.cancel()
    second.cancel()
    await fixture.clock.settle()
    #expect(fixture.transport.sent("phx_leave").map(\.topic) == ["realtime:a", "realtime:b"])
    #expect(fixture.connection.status.topics.isEmpty)
  }

  @Test func releasingASubscriptionCancelsIt() async throws {
    let fixture = try ConnectionFixture()
    do {
      let subscription = try fixture.listen("a")
      fixture.connection.start()
      await fixture.clock.settle()
      #expect(fixture.connection.status.topics.count == 1)
      withExtendedLifetime(subscription) {}
    }
    await fixture.clock.settle()
    #expect(fixture.connection.status.topics.isEmpty)
  }

  @Test func aTopicThatCannotBeSentIsRefusedAtOnce() throws {
    let fixture = try ConnectionFixture()
    #expect(throws: ChannelTopicError.empty) { try fixture.listen("") }
    #expect(throws: ChannelTopicError.tooLong(bytes: 256)) { try fixture.listen(String(repeating: "x", count: 247)) }
  }

  @Test func aCutConnectionComesBackAndRingsOnce() async throws {
    let (fixture, subscription) = try await ConnectionFixture.joined("a", "b")
    #expect(fixture.rings.map(\.topics) == [["a", "b"]])
    fixture.transport.cut()
    await fixture.clock.settle()
    #expect(fixture.connection.status.state == .backingOff(until: fixture.clock.now + .seconds(1)))
    #expect(!fixture.connection.status.isReady)
    await fixture.clock.advance(by: .seconds(1))
    #expect(fixture.connection.status.isReady)
    #expect(fixture.rings.map(\.topics) == [["a", "b"], ["a", "b"]])
    #expect(fixture.transport.mostConnectionsAtOnce == 1)
    subscription.cancel()
  }

  @Test func joinsWaitForTheToken() async throws {
    let clock = VirtualClock()
    // Its own clock: only that one moves the session owner.
    let fixture = try ConnectionFixture(credentials: ScriptedCredentials(.later(.seconds(3), "late"), clock: clock))
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.settle()
    await fixture.clock.advance(by: .seconds(20))
    #expect(fixture.connection.status.state == .open)
    #expect(fixture.transport.sent("phx_join").isEmpty)
    await clock.advance(by: .seconds(3))
    await fixture.clock.settle()
    #expect(fixture.transport.sent("phx_join").map { $0.json?["access_token"] } == ["late"])
    subscription.cancel()
  }

  @Test func aRefusedTokenIsRefreshedOnce() async throws {
    let credentials = ScriptedCredentials(.token("old"), .token("new"))
    let fixture = try ConnectionFixture(
      [
        .accept, .expect(.join("a", ["access_token": "old"])),
        .reply(status: "error", response: ["reason": "InvalidJWTToken: Token has expired 9 seconds ago"]),
        .expect(.join("a", ["access_token": "new"])), .reply(),
      ], credentials: credentials)
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.settle()
    #expect(fixture.transport.problems == [])
    #expect(credentials.questions == [false, true])
    #expect(fixture.connection.status.isReady)
    subscription.cancel()
  }

  @Test func aPushedTokenReachesJoinedTopics() async throws {
    let fixture = try ConnectionFixture(credentials: ScriptedCredentials(.token("one")))
    let subscription = try fixture.listen("a", "b")
    fixture.connection.start()
    await fixture.clock.settle()
    fixture.connection.setAccessToken("two")
    fixture.connection.setAccessToken("two")
    await fixture.clock.settle()
    let pushes = fixture.transport.sent("access_token")
    #expect(pushes.map(\.topic) == ["realtime:a", "realtime:b"])
    #expect(pushes.allSatisfy { $0.json == ["access_token": "two"] && $0.joinRef != nil })

    fixture.connection.setAccessToken(nil)
    await fixture.clock.advance(by: .seconds(3_600))
    #expect(fixture.connection.status.state == .awaitingCredentials)
    #expect(fixture.transport.liveConnections == 0)
    subscription.cancel()
  }

  @Test func anUnavailableSessionIsAskedAgain() async throws {
    let credentials = ScriptedCredentials(.failure, .failure, .token("t"))
    let fixture = try ConnectionFixture(credentials: credentials)
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.advance(by: .seconds(4))
    #expect(credentials.questions == [false, false, false])
    #expect(fixture.connection.status.isReady)
    subscription.cancel()
  }

  /// A reader that is cancelled and a change that is told to it at the same moment must not wait for each other.
  @Test(.timeLimit(.minutes(5))) func readersMayLeaveWhileTheStateChanges() async throws {
    let fixture = try ConnectionFixture()
    let connection = fixture.connection
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for _ in 0..<3_000 { (try? connection.subscribe(topics: ["kizunasync:todos"]) { _ in })?.cancel() }
      }
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<1_500 {
            let reader = Task { for await _ in connection.statusUpdates {} }
            await Task.yield()
            reader.cancel()
            await reader.value
          }
        }
      }
    }
    await connection.stop()
  }

  @Test func statusUpdatesTellEachChange() async throws {
    let fixture = try ConnectionFixture()
    let seen = Locked<[RealtimeStatus.State]>([])
    let updates = fixture.connection.statusUpdates
    let reader = Task {
      for await status in updates {
        seen.withLock { if $0.last != status.state { $0.append(status.state) } }
      }
    }
    await fixture.clock.settle()
    let subscription = try fixture.listen("a")
    await fixture.clock.settle()
    fixture.connection.start()
    await fixture.clock.settle()
    fixture.transport.cut()
    await fixture.clock.settle()
    let until = fixture.clock.now + .seconds(1)
    await fixture.connection.stop()
    await fixture.clock.settle()
    let states = seen.withLock { $0 }
    #expect(states.first == .stopped)
    #expect(states.contains(.open))
    #expect(states.suffix(2) == [.backingOff(until: until), .stopped])
    reader.cancel()
    subscription.cancel()
  }

  /// A reader that sleeps meanwhile gets all of them afterwards, each once; answered heartbeats are none.
  @Test func everyTransitionIsToldOnce() async throws {
    let fixture = try ConnectionFixture()
    let updates = fixture.connection.statusUpdates
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.settle { fixture.connection.status.isReady }
    for _ in 0..<20 {
      await fixture.clock.advance(by: .seconds(600))
      fixture.transport.cut()
      await fixture.clock.settle { !fixture.connection.status.isReady }
      await fixture.clock.advance(by: .seconds(2))
      await fixture.clock.settle { fixture.connection.status.isReady }
    }
    #expect(fixture.connection.status.counters.heartbeatsSent > 200)
    await fixture.connection.stop()
    var seen: [RealtimeStatus] = []
    for await status in updates {
      seen.append(status)
      if status.state == .stopped, seen.contains(where: \.isReady) { break }
    }
    #expect(seen.indices.dropFirst().filter { seen[$0].isReady && !seen[$0 - 1].isReady }.count == 21)
    // Once more when that has lasted so long that the failure before counts no more; the last one is stopped first.
    #expect(seen.filter { $0.isReady && $0.lastFailure != nil }.count == 20)
    #expect(seen.filter { $0.isReady && $0.lastFailure == nil }.count == 20)
    #expect(seen.filter { $0.state == .connecting }.count == 21)
    #expect(seen.filter { if case .backingOff = $0.state { true } else { false } }.count == 20)
    subscription.cancel()
  }

  /// A token of an hour is renewed before a join that would come in its last minute.
  @Test func aTokenThatEndsSoonIsRenewedBeforeAJoin() async throws {
    let start = VirtualClock().wallMilliseconds / 1000
    func token(_ number: Int64) -> String { TestToken.user("u", expiresAt: start + (number + 1) * 3600) }
    let credentials = ScriptedCredentials(.token(token(0)), .token(token(1)))
    let fixture = try ConnectionFixture(credentials: credentials)
    let clock = fixture.clock
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await clock.settle { fixture.connection.status.isReady }
    for (wait, count) in [(1800.0, 1), (1750.0, 2)] {
      await clock.advance(by: .seconds(wait))
      fixture.transport.cut()
      await clock.settle { !fixture.connection.status.isReady }
      await clock.advance(by: .seconds(2))
      await clock.settle { fixture.connection.status.isReady }
      let joins = fixture.transport.sent("phx_join")
      #expect(joins.last?.json?["access_token"] == .string(token(Int64(count - 1))))
      #expect(credentials.questions.count == count)
    }
    subscription.cancel()
  }

  @Test func aSuspendedHostProbesThePeer() async throws {
    let (fixture, subscription) = try await ConnectionFixture.joined("a")
    fixture.transport.setAnswersHeartbeats(false)
    let before = fixture.transport.sent("heartbeat").count
    await fixture.clock.suspendHost(for: .seconds(7_200))
    #expect(fixture.transport.sent("heartbeat").count > before)
    #expect(fixture.connection.status.state == .open)
    await fixture.clock.advance(by: .seconds(6))
    #expect(fixture.connection.status.counters.heartbeatsMissed == 1)
    fixture.transport.setAnswersHeartbeats(true)
    await fixture.clock.advance(by: .seconds(2))
    #expect(fixture.connection.status.isReady)
    subscription.cancel()
  }

  @Test func nothingSecretIsLogged() async throws {
    let fixture = try ConnectionFixture(
      [
        .refuse(
          status: 500,
          body: #"{"error":"for eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYXV0aGVudGljYXRlZCJ9.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"}"#
        ),
        .accept, .expect(.join("a")), .reply(), .sendRaw(.text("secret body")), .close(code: 1011, reason: "x"),
      ], credentials: ScriptedCredentials(.token("secret-token")))
    let subscription = try fixture.listen("a")
    fixture.connection.start()
    await fixture.clock.advance(by: .seconds(10))
    fixture.transport.broadcast("a", payload: ["row": "secret row"])
    await fixture.clock.settle()
    let text = fixture.logged.joined(separator: "\n")
    #expect(text.contains("realtime.open") && text.contains("realtime.lost") && text.contains("realtime.joined"))
    #expect(!text.contains("secret"))
    #expect(!text.contains("eyJ"))
    #expect(!text.contains("websocket"))
    subscription.cancel()
  }
}
