import HTTPClient
import HostKit
import LocalStack
import PhoenixChannels
import SyncServer
import Testing

@testable import SupabaseRealtime

/// The connection over real sockets against the development server, one test for each way things break.
@Suite(.timeLimit(.minutes(5)))
struct RealSocketScenarios {
  /// A server, a connection that is signed in, and the rings it heard.
  private struct Setting {
    let stack: LocalStack
    let connection: RealtimeConnection
    let rings: AsyncStream<RealtimeRing>
    let subscription: RealtimeSubscription

    /// Waits for a ring of that cause.
    func ring(_ cause: RealtimeRing.Cause) async -> RealtimeRing? {
      for await ring in rings where ring.cause == cause { return ring }
      return nil
    }

    func waitUntilReady() async {
      for await status in connection.statusUpdates where status.isReady { return }
    }

    func waitUntilUnready() async {
      for await status in connection.statusUpdates where !status.isReady { return }
    }

    func write(_ key: String) async throws {
      try await stack.server.upsert("todos", key, ["owner_id": .string(stack.users[0].id)])
    }
  }

  private struct Token: RealtimeCredentials {
    let text: String
    func accessToken(refresh: Bool) async throws -> String? { text }
  }

  private func with(
    _ version: PhoenixVersion = .v2, _ change: (inout ConnectionPolicy) -> Void = { _ in },
    _ body: (Setting) async throws -> Void
  ) async throws {
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id")],
        users: [LocalStackConfiguration.User(email: "ann@example.com", password: "pw")]))
    var configuration = RealtimeConfiguration(
      url: try ServerURL(stack.url), apiKey: stack.publishableKey, version: version)
    configuration.policy.reconnect.base = .milliseconds(50)
    configuration.policy.reconnect.limitDelay = .milliseconds(50)
    configuration.policy.join.backoffBase = .milliseconds(50)
    configuration.policy.replicationReady = false
    change(&configuration.policy)
    let token = stack.services.tokens.accessToken(
      subject: stack.users[0].id, now: SystemClock.shared.wallMilliseconds / 1_000, lifetime: 600)
    let connection = RealtimeConnection(
      configuration, transport: LibwebsocketsTransport(), credentials: Token(text: token))
    let (rings, continuation) = AsyncStream.makeStream(of: RealtimeRing.self)
    let subscription = try connection.subscribe(topics: ["kizunasync:todos"]) { continuation.yield($0) }
    connection.start()
    let setting = Setting(stack: stack, connection: connection, rings: rings, subscription: subscription)
    do {
      try await body(setting)
    } catch {
      await connection.stop()
      try? await stack.stop()
      throw error
    }
    await connection.stop()
    // The server notices the end of a connection a moment after its client.
    #expect(await stack.waitForRealtime { $0.openSockets == 0 })
    try await stack.stop()
  }

  @Test(arguments: PhoenixVersion.allCases)
  func aCommitRings(version: PhoenixVersion) async throws {
    try await with(version) { setting in
      #expect(await setting.ring(.joined)?.topics == ["kizunasync:todos"])
      try await setting.write("t1")
      let ring = await setting.ring(.broadcast(event: "changed"))
      #expect(ring?.topics == ["kizunasync:todos"])
      #expect((ring?.receivedAt ?? 0) > 0)
    }
  }

  /// Realtime wire contract §12: every close that nobody asked for reconnects.
  @Test(arguments: [1000, 1001, 1011, 1012, 4001] as [UInt16])
  func theServerClosesTheSocket(code: UInt16) async throws {
    try await with { setting in
      await setting.waitUntilReady()
      #expect(await setting.ring(.joined) != nil)
      await setting.stack.closeSockets(code: code, announced: code == 1012)
      #expect(await setting.ring(.joined) != nil)
      try await setting.write("t1")
      #expect(await setting.ring(.broadcast(event: "changed")) != nil)
    }
  }

  @Test(arguments: [true, false])
  func theSocketIsCut(reset: Bool) async throws {
    try await with { setting in
      #expect(await setting.ring(.joined) != nil)
      await setting.stack.dropSockets(reset: reset)
      #expect(await setting.ring(.joined) != nil)
      #expect(await setting.stack.acceptedSockets == 2)
    }
  }

  /// Realtime wire contract §18, D09: nobody waits for the close handshake of a dead peer.
  @Test func thePeerSwallowsEverything() async throws {
    try await with(.v2) { policy in
      policy.heartbeat.interval = .milliseconds(100)
      policy.heartbeat.deadline = .milliseconds(200)
      policy.closeDeadline = .milliseconds(300)
    } _: { setting in
      #expect(await setting.ring(.joined) != nil)
      await setting.stack.setSilent(true)
      await setting.waitUntilUnready()
      await setting.stack.setSilent(false)
      #expect(await setting.ring(.joined) != nil)
    }
  }

  @Test func upgradesAreRefusedForAWhile() async throws {
    try await with { setting in
      #expect(await setting.ring(.joined) != nil)
      await setting.stack.refuseUpgrades(status: 503)
      await setting.stack.dropSockets()
      await setting.waitUntilUnready()
      await setting.stack.refuseUpgrades(status: nil)
      #expect(await setting.ring(.joined) != nil)
    }
  }

  @Test func upgradesAreNeverAnswered() async throws {
    try await with(.v2) {
      $0.handshakeDeadline = .milliseconds(200)
    } _: { setting in
      #expect(await setting.ring(.joined) != nil)
      await setting.stack.ignoreUpgrades()
      await setting.stack.dropSockets()
      await setting.waitUntilUnready()
      for await status in setting.connection.statusUpdates where status.attempt >= 2 { break }
      await setting.stack.refuseUpgrades(status: nil)
      #expect(await setting.ring(.joined) != nil)
    }
  }

  /// D31: a stop at any moment leaves no socket behind.
  @Test(arguments: 0..<20)
  func stopComesAtAnyMoment(step: Int) async throws {
    try await with { setting in
      try await SystemClock.shared.sleep(nanoseconds: UInt64(step) * 200_000)
      await setting.connection.stop()
      #expect(setting.connection.status.state == .stopped)
    }
  }

  enum Moment: CaseIterable, Sendable {
    case connecting, joining, open, denied, deaf, backingOff, suspended, awaitingCredentials, disconnected
  }

  /// D20: letting go of a connection closes its socket, in every state.
  @Test(arguments: Moment.allCases)
  func theConnectionIsForgotten(moment: Moment) async throws {
    var options = LocalStack.Options()
    options.policy = .signedIn()
    options.realtime.channelErrorBackoff = 0
    if moment == .joining { options.realtime.joinDelay = .seconds(600) }
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable()], users: [LocalStackConfiguration.User(email: "ann@example.com", password: "pw")]),
      options: options)
    let token = stack.services.tokens.accessToken(
      subject: stack.users[0].id, now: SystemClock.shared.wallMilliseconds / 1_000, lifetime: 600)
    let url = try ServerURL(stack.url)
    let rings = Locked(0)
    weak var released: RealtimeConnection?
    do {
      var configuration = RealtimeConfiguration(url: url, apiKey: stack.publishableKey)
      configuration.policy.reconnect.base = .seconds(60)
      configuration.policy.idleLinger = .milliseconds(20)
      configuration.policy.replicationReady = false
      let connection = RealtimeConnection(
        configuration, transport: LibwebsocketsTransport(), credentials: Token(text: token))
      released = connection
      let topic = moment == .denied ? "forbidden:x" : "kizunasync:todos"
      let subscription = try connection.subscribe(topics: [topic]) { _ in rings.withLock { $0 += 1 } }
      if moment == .connecting { await stack.ignoreUpgrades() }
      connection.start()
      await Self.bringAbout(moment, connection, stack, subscription)
      withExtendedLifetime(subscription) {}
    }
    await lookAgain(while: { released != nil || openSockets(to: stack.port) > 0 })
    #expect(released == nil)
    await stack.waitForRealtime { $0.openSockets == 0 }
    // Nobody is there to be rung.
    let heard = rings.withLock { $0 }
    await stack.send(topic: "kizunasync:todos", event: "x", payload: [:])
    #expect(rings.withLock { $0 } == heard)
    try await stack.stop()
  }

  private static func bringAbout(
    _ moment: Moment, _ connection: RealtimeConnection, _ stack: LocalStack, _ subscription: RealtimeSubscription
  ) async {
    func wait(_ condition: (RealtimeStatus) -> Bool) async {
      for await status in connection.statusUpdates where condition(status) { return }
    }
    switch moment {
    case .connecting: return await wait { $0.state == .connecting }
    case .joining: return await wait { $0.topics.first?.state == .joining }
    case .denied:
      return await wait { if case .denied = $0.topics.first?.state { true } else { false } }
    case .open, .deaf, .backingOff, .suspended, .awaitingCredentials, .disconnected: break
    }
    await wait { $0.isReady }
    #expect(await stack.openSockets == 1)
    switch moment {
    case .deaf: await stack.setSilent(true)
    case .backingOff:
      await stack.dropSockets()
      await wait { $0.attempt > 0 }
    case .suspended:
      connection.hint(.pathUnsatisfied)
      await stack.dropSockets()
      await wait { if case .suspended = $0.state { true } else { false } }
    case .awaitingCredentials:
      connection.setAccessToken(nil)
      await wait { $0.state == .awaitingCredentials }
    case .disconnected:
      subscription.cancel()
      await wait { $0.state == .disconnected }
    case .connecting, .joining, .denied, .open: break
    }
  }

  /// D28: over HTTP a topic is named without the prefix that frames carry; with it, the server accepts the message and
  /// nobody hears it.
  @Test func aBroadcastOverHTTPRings() async throws {
    try await with { setting in
      #expect(await setting.ring(.joined) != nil)
      let http = CurlHTTPClient(CurlHTTPClient.Settings(proxy: .direct))
      let token = setting.stack.services.tokens.accessToken(
        subject: setting.stack.users[0].id, now: SystemClock.shared.wallMilliseconds / 1_000, lifetime: 600)
      for (topic, event) in [("realtime:kizunasync:todos", "lost"), ("kizunasync:todos", "heard")] {
        let body: JSONValue = [
          "messages": [["topic": .string(topic), "event": .string(event), "payload": ["n": 1], "private": true]]
        ]
        let answer = try await http.send(
          HTTPRequest(
            method: "POST", url: "\(setting.stack.url)/realtime/v1/api/broadcast",
            headers: [
              HTTPHeader("Authorization", "Bearer \(token)"), HTTPHeader("apikey", setting.stack.publishableKey),
              HTTPHeader("Content-Type", "application/json"),
            ], body: JSONWriter.data(body)))
        #expect(answer.status == 202)
      }
      var iterator = setting.rings.makeAsyncIterator()
      let ring = await iterator.next()
      #expect(ring?.cause == .broadcast(event: "heard"))
      #expect(ring?.topics == ["kizunasync:todos"])
      await http.shutdown()
    }
  }
}
