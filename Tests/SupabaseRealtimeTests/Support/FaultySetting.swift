import HostKit
import KizunaSyncTestSupport
import LocalStack
import PhoenixChannels
import SyncServer
import Testing

@testable import SupabaseRealtime

/// A connection that reaches the development server through a fault proxy, and the rings it heard.
struct FaultySetting {
  static let topics = ["kizunasync:notes", "kizunasync:tags", "kizunasync:todos"]

  let stack: LocalStack
  let proxy: FaultProxy
  let connection: RealtimeConnection
  let rings: AsyncStream<RealtimeRing>
  /// All of them so far.
  let heard: Observed<[RealtimeRing]>
  private let subscription: RealtimeSubscription

  private struct Token: RealtimeCredentials {
    let text: String
    func accessToken(refresh: Bool) async throws -> String? { text }
  }

  /// Quick enough for tests, and slow enough for a loaded machine.
  private static var policy: ConnectionPolicy {
    var policy = ConnectionPolicy()
    policy.reconnect.base = .milliseconds(20)
    policy.reconnect.cap = .milliseconds(100)
    policy.reconnect.limitDelay = .milliseconds(50)
    policy.reconnect.budget = 100_000
    policy.heartbeat.interval = .milliseconds(200)
    policy.heartbeat.deadline = .milliseconds(800)
    policy.join.deadline = .seconds(2)
    policy.join.backoffBase = .milliseconds(50)
    policy.handshakeDeadline = .milliseconds(500)
    policy.closeDeadline = .milliseconds(300)
    policy.replicationReady = false
    return policy
  }

  static func with(
    _ version: PhoenixVersion = .v2, rules: FaultRules = FaultRules(),
    _ change: (inout ConnectionPolicy) -> Void = { _ in }, prepare: (LocalStack) async -> Void = { _ in },
    _ body: (FaultySetting) async throws -> Void
  ) async throws {
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: Dictionary(uniqueKeysWithValues: ["notes", "tags", "todos"].map { ($0, SyncTable()) }),
        users: [LocalStackConfiguration.User(email: "ann@example.com", password: "pw")]))
    await prepare(stack)
    let proxy = try FaultProxy(to: stack.port)
    proxy.rules = rules
    var configuration = RealtimeConfiguration(
      url: try ServerURL("http://127.0.0.1:\(proxy.port)"), apiKey: stack.publishableKey, version: version)
    configuration.policy = policy
    change(&configuration.policy)
    let setting = try FaultySetting(stack, proxy, configuration)
    func end() async throws {
      await setting.connection.stop()
      await proxy.stop()
      try await stack.stop()
    }
    do {
      try await body(setting)
    } catch {
      try await end()
      throw error
    }
    try await end()
    #expect(openSockets(to: proxy.port) == 0)
  }

  private init(_ stack: LocalStack, _ proxy: FaultProxy, _ configuration: RealtimeConfiguration) throws {
    self.stack = stack
    self.proxy = proxy
    let token = stack.services.tokens.accessToken(
      subject: stack.users[0].id, now: SystemClock.shared.wallMilliseconds / 1_000, lifetime: 600)
    connection = RealtimeConnection(
      configuration, transport: LibwebsocketsTransport(), credentials: Token(text: token))
    let (rings, continuation) = AsyncStream.makeStream(of: RealtimeRing.self)
    let heard = Observed<[RealtimeRing]>([])
    self.rings = rings
    self.heard = heard
    subscription = try connection.subscribe(topics: Self.topics) { ring in
      heard.change { $0.append(ring) }
      continuation.yield(ring)
    }
    connection.start()
  }

  /// A second connection to the same server, by the same way and policy.
  func another() throws -> FaultySetting {
    try FaultySetting(stack, proxy, connection.configuration)
  }

  /// Nobody wants a topic any more.
  func leave() { subscription.cancel() }

  func waitFor(_ condition: (RealtimeStatus) -> Bool) async {
    for await status in connection.statusUpdates where condition(status) { return }
  }

  func waitUntilReady() async {
    for await status in connection.statusUpdates where status.isReady { return }
  }

  func waitUntilUnready() async {
    for await status in connection.statusUpdates where !status.isReady { return }
  }

  /// Waits until so many attempts in a row have failed.
  func waitForAttempts(_ count: Int) async {
    for await status in connection.statusUpdates where status.attempt >= count { return }
  }

  /// Waits until the server counts one socket with every topic joined and a broadcast of each rings, and checks that none
  /// was ever joined twice on one socket.
  func expectRecovery(_ location: SourceLocation = #_sourceLocation) async {
    repeat {
      await waitUntilReady()
      await stack.waitForRealtime(Self.isJoinedOnce)
    } while await !ringsEverywhere && !Task.isCancelled
    let counts = await stack.realtimeCounts
    #expect(counts.openSockets == 1, sourceLocation: location)
    #expect(Self.topics.map { counts.topics[$0]?.members } == [1, 1, 1], sourceLocation: location)
    #expect(counts.repeatedJoins == 0, sourceLocation: location)
  }

  private static func isJoinedOnce(_ counts: RealtimeCounts) -> Bool {
    counts.openSockets == 1 && topics.allSatisfy { counts.topics[$0]?.members == 1 }
  }

  /// False when either side had not noticed yet that the connection is gone.
  private var ringsEverywhere: Bool {
    get async {
      for topic in Self.topics where await !rings(topic) { return false }
      return true
    }
  }

  /// Sends a broadcast and waits for its ring, or for the one of a new join, which tells that it is lost.
  private func rings(_ topic: String) async -> Bool {
    let name = "n\(UInt32.random(in: 0 ... .max))"
    guard await stack.send(topic: topic, event: name, payload: [:]) == 1 else { return false }
    for await ring in rings {
      if ring.cause == .broadcast(event: name) { return ring.topics == [topic] }
      if ring.cause == .joined { return false }
    }
    return false
  }
}
