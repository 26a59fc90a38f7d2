import Glibc
import HostKit
import KizunaDoorbell
import KizunaSyncTestSupport
import LocalStack
import SyncServer
import Testing

/// A gateway behind a fault proxy, in this process or in its own, with its server in this process.
struct FaultyHost: Sendable {
  enum Kind: String, CaseIterable, Sendable {
    case library, program
  }

  let stack: LocalStack
  let proxy: FaultProxy
  let database: String
  /// Nil for the library.
  let process: ChildProcess?
  private let owner: String

  /// Quick enough for tests: a second and a half until a silent peer is noticed.
  static let policy = """
    "pollInterval": 1,
    "realtime": {
      "heartbeatInterval": 0.5, "heartbeatDeadline": 1, "reconnectBase": 0.05, "reconnectCap": 0.2,
      "reconnectBudget": 100000,
    },
    """

  static func with(
    _ kind: Kind, policy: String = policy, _ body: (FaultyHost) async throws -> Void
  ) async throws {
    try await Scratch.with { scratch in
      let stack = try await LocalStack.start(
        LocalStackConfiguration(
          tables: ["todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)],
          users: [.init(email: Stack.email, password: Stack.password)]))
      let proxy = try FaultProxy(to: stack.port)
      let database = scratch.path + "/a.db"
      let file = try scratch.write("a.json", configuration(stack, proxy, database, policy))
      do {
        switch kind {
        case .program:
          try await RunningGateway.with(configuration: file) { gateway in
            try await body(FaultyHost(stack, proxy, database, gateway.process))
          }
        case .library:
          let gateway = Gateway(try GatewayConfiguration.load(file: file).configuration)
          try await gateway.start()
          for await status in gateway.connection.statusUpdates where status.isReady { break }
          do {
            try await body(FaultyHost(stack, proxy, database, nil))
          } catch {
            await gateway.stop()
            throw error
          }
          await gateway.stop()
        }
      } catch {
        await proxy.stop()
        try await stack.stop()
        throw error
      }
      await proxy.stop()
      try await stack.stop()
    }
  }

  private init(_ stack: LocalStack, _ proxy: FaultProxy, _ database: String, _ process: ChildProcess?) {
    self.stack = stack
    self.proxy = proxy
    self.database = database
    self.process = process
    owner = stack.users[0].id
  }

  private static func configuration(
    _ stack: LocalStack, _ proxy: FaultProxy, _ database: String, _ policy: String
  ) -> String {
    """
    {
      "url": "http://127.0.0.1:\(proxy.port)",
      "publishableKey": "\(stack.publishableKey)",
      "database": "\(database)",
      "tables": {
        "todos": {
          "bucket": {"owner": "owner_id"}, "columns": {"owner_id": "text", "title": "text", "done": "boolean"},
        },
      },
      "session": {"email": "\(Stack.email)", "password": "\(Stack.password)"},
      \(policy)
    }
    """
  }

  // MARK: Rows

  /// A program on the host writes.
  func writeHere(_ title: String) throws {
    try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('\(title)')")
  }

  /// Another device of the user writes.
  func writeThere(_ title: String) async throws {
    try await stack.server.upsert("todos", title, ["owner_id": .string(owner), "title": .string(title)])
  }

  /// Waits until both sides have the same rows, `titles` among them.
  func converge(_ titles: [String]) async throws {
    try await eventually("\(titles) on both sides") {
      let here = Set(try PlainSQL.run(database, "SELECT title FROM todos"))
      guard here.isSuperset(of: titles), try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_outbox") == ["0"]
      else { return false }
      return await stack.server.rowCount("todos") == here.count
    }
  }

  /// Waits until the server counts one socket that has joined the topic, and checks that it was joined once.
  func expectJoinedOnce(_ context: String, _ location: SourceLocation = #_sourceLocation) async {
    await stack.waitForRealtime { $0.openSockets == 1 && $0.topics["kizunasync:todos"]?.members == 1 }
    let counts = await stack.realtimeCounts
    #expect(counts.openSockets == 1, "\(context)", sourceLocation: location)
    #expect(counts.repeatedJoins == 0, "\(context)", sourceLocation: location)
  }
}
