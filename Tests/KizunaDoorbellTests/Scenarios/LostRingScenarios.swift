import HTTPClient
import HostKit
import KizunaDoorbell
import KizunaSync
import KizunaSyncTestSupport
import PhoenixChannels
import SupabaseRealtime
import Testing

/// Realtime wire contract §18, kind K: what happens to rows whose ring is late, lost, doubled or out of order. A replica
/// with its scheduler and a scripted doorbell; time is virtual, and a poll is an hour away unless said otherwise.
@Suite struct LostRingScenarios {
  private static let todos = "kizunasync:todos"
  private let clock = VirtualClock()

  /// Two clients of one user at one server: one with a doorbell, and one that only writes.
  private struct Pair {
    let transport: ScriptedTransport
    let connection: RealtimeConnection
    let reader: KizunaSyncClient
    let writer: KizunaSyncClient
    let scheduler: KizunaSyncScheduler

    func write(_ title: String, id: String? = nil) async throws {
      var row: [String: any Sendable] = ["title": title]
      if let id { row["id"] = id }
      try await writer.from("todos").insert(row)
      try await writer.sync()
    }

    func titles() async throws -> [String] {
      let rows = try await reader.query(table: "todos") as? [[String: Any]]
      return (rows ?? []).compactMap { $0["title"] as? String }.sorted()
    }

    func stop() async {
      scheduler.stop()
      await connection.stop()
      await reader.dispose()
      await writer.dispose()
    }
  }

  private func client(_ server: SyncServer, hlc: Bool) async throws -> KizunaSyncClient {
    let client = KizunaSyncClient(http: SyncServerTransport(server), clock: clock)
    try await client.create(
      KizunaSyncClientConfig(
        tables: [
          "todos": KizunaSyncTableConfig(
            bucket: .byOwner("owner_id"), conflictMode: hlc ? .hlc : .arrival, columns: ["title": .text])
        ], remote: KizunaSyncRemoteConfig(url: "https://example.com", publishableKey: "key")))
    try await client.setAccessToken(TestToken.user("ann"))
    return client
  }

  private func pair(
    _ script: RealtimeScript = [], pollInterval: Double = 3_600, hlc: Bool = false
  ) async throws -> Pair {
    let server = SyncServer(
      configuration: SyncServerConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id", conflictMode: hlc ? .hlc : .arrival)]))
    let transport = ScriptedTransport(clock: clock, script)
    let connection = RealtimeConnection(
      RealtimeConfiguration(url: try ServerURL("https://example.com"), apiKey: "key"), transport: transport,
      clock: clock, jitter: { 1 })
    let reader = try await client(server, hlc: hlc)
    let scheduler = KizunaSyncScheduler(
      clock: clock, client: reader, pollInterval: pollInterval, monitorPath: false, observeForeground: false,
      realtime: RealtimeDoorbell(connection), realtimeTables: ["todos"], refreshSession: { true }, jitterSource: { 1 })
    let pair = Pair(
      transport: transport, connection: connection, reader: reader, writer: try await client(server, hlc: hlc),
      scheduler: scheduler)
    scheduler.start()
    await rest(pair)
    return pair
  }

  /// Until no run is in flight and nothing is due.
  private func rest(_ pair: Pair) async {
    await clock.settle(until: { pair.scheduler.health().attemptStartedAt == nil })
    await clock.settle()
    await clock.settle(until: { pair.scheduler.health().attemptStartedAt == nil })
  }

  /// The server says "joined" three seconds before the database's broadcasts reach it.
  @Test func d23_aRowBetweenTheJoinAndTheReadinessIsPulled() async throws {
    let ready = PhoenixFrame(
      joinRef: "1", topic: "realtime:" + Self.todos, event: "system",
      ["extension": "system", "status": "ok", "message": "Replication connection established", "channel": "x"])
    let pair = try await pair([.accept, .expect(.join(Self.todos)), .reply(), .wait(.seconds(3)), .send(ready)])
    #expect(pair.connection.status.isReady)
    await clock.advance(by: .seconds(1))
    try await pair.write("between")
    await clock.advance(by: .seconds(1))
    await rest(pair)
    #expect(try await pair.titles() == [])
    await clock.advance(by: .seconds(2))
    await rest(pair)
    #expect(try await pair.titles() == ["between"])
    #expect(pair.transport.problems == [])
    await pair.stop()
  }

  @Test func d24_aRowInTheGapIsPulledAfterTheRejoin() async throws {
    let pair = try await pair()
    pair.transport.setReachable(false)
    pair.transport.cut()
    await clock.advance(by: .seconds(60))
    try await pair.write("gap")
    pair.transport.setReachable(true)
    await clock.advance(by: .seconds(31))
    await rest(pair)
    #expect(pair.connection.status.isReady)
    #expect(try await pair.titles() == ["gap"])
    // No broadcast said so.
    #expect(pair.connection.status.counters.broadcasts == 0)
    await pair.stop()
  }

  /// A joined channel on which nothing ever comes: the poll finds the row, and the status tells that nothing rang.
  @Test func d25_aDeafChannelConvergesByThePoll() async throws {
    let pair = try await pair(pollInterval: 15)
    try await pair.write("unheard")
    for _ in 0..<20 {
      await clock.advance(by: .seconds(1))
      await rest(pair)
    }
    #expect(try await pair.titles() == ["unheard"])
    #expect(pair.connection.status.isReady)
    #expect(pair.connection.status.counters.broadcasts == 0)
    await pair.stop()
  }

  /// The order of rings is not the order of commits, and some come twice.
  @Test func duplicateAndReorderedRingsCostPullsAndNothingElse() async throws {
    let pair = try await pair()
    try await pair.write("one")
    try await pair.write("two")
    for id in ["two", "one", "two", "one"] {
      pair.transport.send(
        PhoenixFrame(
          topic: "realtime:" + Self.todos, event: "broadcast",
          ["type": "broadcast", "event": "changed", "payload": ["t": "todos"], "meta": ["id": .string(id)]]))
    }
    await rest(pair)
    #expect(try await pair.titles() == ["one", "two"])
    await pair.stop()
  }

  /// The older version of a row reaches the server after the newer one; its ring does not bring it back.
  @Test func outOfOrderVersions() async throws {
    let pair = try await pair(hlc: true)
    let id = "00000000-0000-4000-8000-000000000001"
    try await pair.write("first", id: id)
    pair.transport.broadcast(Self.todos)
    await rest(pair)
    #expect(try await pair.titles() == ["first"])

    // Written earlier, and sent only after the later version has been accepted.
    pair.scheduler.stop()
    try await pair.reader.from("todos").update(["title": "older"]).eq("id", id).execute()
    await clock.advance(by: .seconds(10))
    try await pair.writer.from("todos").update(["title": "newer"]).eq("id", id).execute()
    try await pair.writer.sync()
    try await pair.reader.sync()
    for _ in 0..<2 {
      try await pair.writer.sync()
      try await pair.reader.sync()
    }
    #expect(try await pair.titles() == ["newer"])
    let rows = try await pair.writer.query(table: "todos") as? [[String: Any]]
    #expect(rows?.map { $0["title"] as? String } == ["newer"])
    await pair.stop()
  }
}
