import Glibc
import HostKit
import KizunaSyncTestSupport
import LocalStack
import SyncServer

/// A server in this process, and the configurations of two hosts of one user.
struct TwoHosts: Sendable {
  let stack: LocalStack
  let scratch: Scratch
  let a: Host
  let b: Host

  struct Host: Sendable {
    let database: String
    let configuration: String

    /// Starts `kizuna-doorbell run`, without waiting for anything.
    func start() throws -> ChildProcess {
      try ChildProcess(
        executable: Binaries.doorbell, arguments: ["run", "--config", configuration, "--log-format", "json"])
    }

    func rows(_ table: String = "todos") throws -> [String] {
      try PlainSQL.run(
        database, "SELECT id || ' ' || coalesce(title, '-') || ' ' || coalesce(n, '-') FROM \(table) ORDER BY id")
    }

    func number(_ sql: String) throws -> Int { Int(try PlainSQL.run(database, sql).first ?? "") ?? -1 }

    /// Rows of the journal that are not in the outbox yet.
    static let unharvested = """
      SELECT count(*) FROM _kizunasync_capture
      WHERE seq > coalesce((SELECT value FROM _kizunasync_meta WHERE key = 'harvested'), 0)
      """

    var isDelivered: Bool {
      get throws {
        // In the order in which a write goes, so that none is missed between the two looks.
        try number(Self.unharvested) == 0 && number("SELECT count(*) FROM _kizunasync_outbox") == 0
      }
    }
  }

  static func with(_ body: (TwoHosts) async throws -> Void) async throws {
    try await Scratch.with { scratch in
      let table = SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)
      let stack = try await LocalStack.start(
        LocalStackConfiguration(
          tables: ["todos": table, "bulk": table], users: [.init(email: Stack.email, password: Stack.password)]))
      do {
        try await body(
          TwoHosts(
            stack: stack, scratch: scratch, a: try host("a", stack, scratch), b: try host("b", stack, scratch)))
      } catch {
        try await stack.stop()
        throw error
      }
      try await stack.stop()
    }
  }

  private static func host(_ name: String, _ stack: LocalStack, _ scratch: Scratch) throws -> Host {
    let database = scratch.path + "/\(name).db"
    let table = #"{"bucket": {"owner": "owner_id"}, "columns": {"owner_id": "text", "title": "text", "n": "number"}}"#
    let file = try scratch.write(
      "\(name).json",
      """
      {
        "url": "\(stack.url)", "publishableKey": "\(stack.publishableKey)", "database": "\(database)",
        "tables": {"todos": \(table), "bulk": \(table)},
        "session": {"email": "\(Stack.email)", "password": "\(Stack.password)"},
        "pollInterval": 1,
        "realtime": {"reconnectBase": 0.02, "reconnectCap": 0.1, "reconnectBudget": 1000000},
      }
      """)
    return Host(database: database, configuration: file)
  }

  /// Another device writes so many rows of the table `bulk` at once, more than fit into one page.
  func serveBulk(_ count: Int, _ round: Int) async throws {
    let owner = stack.users[0].id
    try await stack.server.apply(
      (0..<count).map { index in
        .upsert(
          table: "bulk", pk: "b\(index)",
          columns: ["owner_id": .string(owner), "title": .string("bulk-\(index)"), "n": .int(round)])
      })
  }

  /// The server's rows as `Host.rows` prints them, in no order.
  func served(_ table: String, like rows: [String]) async -> [String] {
    let state = await stack.server.snapshot()
    return rows.map { line in
      let key = String(line.prefix { $0 != " " })
      guard let row = state.row(table, key) else { return "\(key) is missing" }
      let n = row["n"].flatMap { $0.isNull ? nil : JSONWriter.text($0) }
      return "\(key) \(row["title"]?.stringValue ?? "-") \(n ?? "-")"
    }
  }
}
