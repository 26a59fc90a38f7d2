import HostKit
import LocalStack
import PhoenixChannels
import SyncServer
import Testing

@testable import SupabaseRealtime

/// The connection over real sockets against the development server, one test for each way things break.
@Suite(.timeLimit(.minutes(1)))
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
    #expect(await stack.openSockets == 0)
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

  /// D20: letting go of a connection closes its socket.
  @Test func theConnectionIsForgotten() async throws {
    let stack = try await LocalStack.start(LocalStackConfiguration(tables: ["todos": SyncTable()]))
    let url = try ServerURL(stack.url)
    do {
      var configuration = RealtimeConfiguration(url: url, apiKey: stack.publishableKey)
      configuration.policy.privateChannels = false
      let connection = RealtimeConnection(configuration, transport: LibwebsocketsTransport())
      let subscription = try connection.subscribe(topics: ["a"]) { _ in }
      connection.start()
      for await status in connection.statusUpdates where status.isReady { break }
      #expect(await stack.openSockets == 1)
      withExtendedLifetime(subscription) {}
    }
    while await stack.openSockets > 0 { await Task.yield() }
    try await stack.stop()
  }
}
