import Glibc
import HostKit
import KizunaDoorbell
import KizunaSync
import KizunaSyncTestSupport
import LocalStack
import SyncServer
import Testing

/// Broadcasts that nobody could have heard, over real sockets: what they would have told arrives all the same.
@Suite(.timeLimit(.minutes(5)))
struct DeliveryGapTests {
  /// Long enough never to come.
  private static let never = UInt64.seconds(86_400)

  private struct Fixture {
    let stack: LocalStack
    let gateway: Gateway

    func write(_ title: String) async throws {
      try await stack.server.upsert(
        "todos", title, ["owner_id": .string(stack.users[0].id), "title": .string(title)])
    }

    /// Waits until the connection is ready and what it rang for has been pulled.
    func settle() async {
      for await status in gateway.connection.statusUpdates where status.isReady && status.counters.rings > 0 { break }
      let (idle, continuation) = AsyncStream.makeStream(of: Void.self)
      let end = gateway.scheduler.onHealth { if $0.attemptStartedAt == nil { continuation.finish() } }
      for await _ in idle {}
      end()
    }

    /// Waits until the row is in the replica.
    func arrives(_ title: String) async throws {
      let (events, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
      let end = try await gateway.client.on { _ in continuation.yield() }
      defer { end() }
      continuation.yield()
      for await _ in events {
        let rows = try await gateway.client.from("todos").select().eq("title", title).execute() as? [[String: Any]]
        if rows?.isEmpty == false { return }
      }
    }
  }

  private func with(
    pollInterval: UInt64, _ options: LocalStack.Options = LocalStack.Options(), losesBroadcasts: Bool = false,
    _ body: (Fixture) async throws -> Void
  ) async throws {
    var template = Array("/tmp/kizuna-gap-XXXXXX".utf8CString)
    _ = try #require(mkdtemp(&template))
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)],
        users: [.init(email: "ann@example.com", password: "pw")]), options: options)
    await stack.setLosesDatabaseMessages(losesBroadcasts)
    var configuration = GatewayConfiguration(
      url: try ServerURL(stack.url), publishableKey: ConfigurationSecret(literal: stack.publishableKey),
      database: folder + "/a.db",
      tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"), columns: ["title": .text])],
      session: .password(email: "ann@example.com", password: ConfigurationSecret(literal: "pw")),
      pollInterval: pollInterval)
    configuration.realtimePolicy.reconnect.base = .milliseconds(50)
    configuration.realtimePolicy.reconnect.cap = .milliseconds(100)
    let gateway = Gateway(configuration)
    do {
      try await gateway.start()
      try await body(Fixture(stack: stack, gateway: gateway))
    } catch {
      await gateway.stop()
      try await stack.stop()
      throw error
    }
    await gateway.stop()
    try await stack.stop()
    _ = await (try ChildProcess(executable: "/bin/rm", arguments: ["-rf", folder])).ending()
  }

  /// D23: the server accepts a join before its broadcasts of the database flow, and says when they do.
  @Test func whatWasWrittenBeforeTheReplicationFlowedIsPulled() async throws {
    let clock = VirtualClock(wallMilliseconds: SystemClock.shared.wallMilliseconds)
    var options = LocalStack.Options()
    options.clock = clock
    options.realtime.replicationReadyDelay = .seconds(3)
    try await with(pollInterval: Self.never, options, losesBroadcasts: true) { fixture in
      await fixture.settle()
      try await fixture.write("between")
      await fixture.stack.setLosesDatabaseMessages(false)
      let rings = fixture.gateway.connection.status.counters.rings
      await clock.advance(by: .seconds(3))
      try await fixture.arrives("between")
      let counters = fixture.gateway.connection.status.counters
      #expect(counters.rings == rings + 1)
      #expect(counters.broadcasts == 0)
    }
  }

  /// D24: a write while the connection is away is told by nobody.
  @Test func whatWasWrittenWhileAwayIsPulledAfterTheRejoin() async throws {
    try await with(pollInterval: Self.never) { fixture in
      await fixture.settle()
      await fixture.stack.refuseUpgrades(status: 503)
      await fixture.stack.dropSockets()
      for await status in fixture.gateway.connection.statusUpdates where status.attempt > 1 { break }
      try await fixture.write("gap")
      await fixture.stack.refuseUpgrades(status: nil)
      try await fixture.arrives("gap")
      #expect(fixture.gateway.connection.status.counters.broadcasts == 0)
    }
  }

  /// D25: joined, green, and never a broadcast: the poll finds what there is, and the status shows that nothing rang.
  @Test func aServerWithoutReplicationIsPolled() async throws {
    try await with(pollInterval: .seconds(1), losesBroadcasts: true) { fixture in
      await fixture.settle()
      for title in ["one", "two"] {
        try await fixture.write(title)
        try await fixture.arrives(title)
      }
      let status = fixture.gateway.connection.status
      #expect(status.isReady)
      #expect(status.counters.broadcasts == 0)
    }
  }
}
