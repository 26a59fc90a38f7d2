import Glibc
import HostKit
import KizunaSyncTestSupport
import Testing

/// The server is killed and started again, over and over, while two hosts write. `KIZUNA_RESTARTS` says how often; the long
/// run makes it 200.
@Suite struct RestartTests {
  static let rounds = ProcessEnvironment.variables["KIZUNA_RESTARTS"].flatMap { Int($0) } ?? 20
  /// What a first few rounds allocate once does not count as growth.
  static let warmUp = max(2, rounds / 10)

  private static let policy = """
    "realtime": {"reconnectBase": 0.02, "reconnectCap": 0.1, "reconnectBudget": 1000000},
    """

  private struct Host {
    let database: String
    let process: ChildProcess

    func rows() throws -> [String] {
      try PlainSQL.run(database, "SELECT id || ' ' || title || ' ' || coalesce(done, 0) FROM todos ORDER BY id")
    }

    var isDelivered: Bool {
      get throws { try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_outbox") == ["0"] }
    }
  }

  @Test(.timeLimit(.minutes(60)))
  func topicsAreJoinedOnceAndNothingIsLostOrLeaks() async throws {
    try await Scratch.with { scratch in
      mkdir(scratch.path + "/server", 0o700)
      let stack = try await DurableStack.start(directory: scratch.path + "/server")
      do {
        try await withHost("a", stack, scratch) { a in
          try await withHost("b", stack, scratch) { b in try await rounds(stack, a, b) }
        }
      } catch {
        await stack.stop()
        throw error
      }
      await stack.stop()
    }
  }

  private func withHost(
    _ name: String, _ stack: DurableStack, _ scratch: Scratch, _ body: (Host) async throws -> Void
  ) async throws {
    let database = scratch.path + "/\(name).db"
    let file = try scratch.write(
      "\(name).json",
      """
      {
        "url": "\(stack.url)", "publishableKey": "\(stack.publishableKey)", "database": "\(database)",
        "tables": {
          "todos": {
            "bucket": {"owner": "owner_id"}, "columns": {"owner_id": "text", "title": "text", "done": "boolean"},
          },
        },
        "session": {"email": "\(Stack.email)", "password": "\(Stack.password)"},
        \(Self.policy)
      }
      """)
    try await RunningGateway.with(configuration: file) { gateway in
      try await body(Host(database: database, process: gateway.process))
    }
  }

  private func rounds(_ stack: DurableStack, _ a: Host, _ b: Host) async throws {
    let titles = (0..<40).map { "row-\($0)" }
    for title in titles { try PlainSQL.run(a.database, "INSERT INTO todos(title, done) VALUES ('\(title)', 0)") }
    try await eventually("the first rows") { try b.rows().count == titles.count }
    let writer = SteadyWriter([a.database, b.database], titles: titles, seed: 1)
    var early: [ProcessResources] = []
    for round in 1...Self.rounds {
      try await stack.killAndRestart()
      // The load went on; this row proves that writes of now come through in both directions.
      let (from, to) = round.isMultiple(of: 2) ? (a, b) : (b, a)
      try PlainSQL.run(from.database, "UPDATE todos SET title = 'mark-\(round)' WHERE title LIKE 'mark-%'")
      if round == 1 { try PlainSQL.run(from.database, "INSERT INTO todos(title) VALUES ('mark-1')") }
      try await eventually("round \(round): both hosts joined and in step") {
        try await stack.counts(of: "kizunasync:todos").members == 2
          && PlainSQL.run(to.database, "SELECT 1 FROM todos WHERE title = 'mark-\(round)'") == ["1"]
      }
      let counts = try await stack.counts(of: "kizunasync:todos")
      #expect(counts == DurableStack.Counts(members: 2, acceptedJoins: 2, repeatedJoins: 0), "round \(round)")
      if round == Self.warmUp { early = try await atRest([a, b], writer) }
    }
    let late = try await atRest([a, b], writer)
    for (early, late) in zip(early, late) {
      #expect(late.descriptors <= early.descriptors, "from \(early) to \(late)")
      // A tenth, and what an allocator may keep for itself.
      #expect(late.residentBytes <= early.residentBytes / 10 * 11 + (4 << 20), "from \(early) to \(late)")
    }
    #expect(await writer.stop() == nil)
    #expect(writer.writes > Self.rounds)
    try await eventually("the same rows everywhere") {
      try a.isDelivered && b.isDelivered && a.rows() == b.rows()
    }
    print(
      "\(Self.rounds) restarts, \(writer.writes) writes; after \(Self.warmUp): \(early); at the end: \(late)")
  }

  /// What both processes hold when nothing is left to do.
  private func atRest(_ hosts: [Host], _ writer: SteadyWriter) async throws -> [ProcessResources] {
    writer.pause()
    try await eventually("everything delivered") { try hosts.allSatisfy { try $0.isDelivered } }
    var resources: [ProcessResources] = []
    for host in hosts { resources.append(try await ProcessResources.atRest(host.process.pid)) }
    writer.goOn()
    return resources
  }
}
