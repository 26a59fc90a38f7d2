import Foundation
import HTTPClient
import HostKit
import KizunaSyncTestSupport
import SyncServer
import Testing

@testable import KizunaSync

/// Random programs of two clients of one user on one server: plain SQL beside each client at every moment, also while a
/// request is under way, library writes, lost requests and answers, small pages, other devices, forgotten checkpoints,
/// restarts. At the end everything must be equal, and nothing left over.
@Suite struct ConvergenceProgramTests {
  static let programs = ProgramCount.of("KIZUNA_CONVERGENCE_PROGRAMS", otherwise: 60)

  enum Place: String, Sendable, CaseIterable {
    case memory, disk
    /// On disk, in a table the app declared.
    case appTable
  }

  @Test(arguments: Place.allCases)
  func clientsAndServerConverge(place: Place) async throws {
    let first = ProgramCount.firstSeed
    // Files and restarts cost more than memory.
    for seed in first..<(first + UInt64(place == .memory ? Self.programs : max(1, Self.programs / 3))) {
      try await withScratchFolder { folder in
        let program = try await ConvergenceProgram(
          seed: seed, folder: place == .memory ? nil : folder, inAppTable: place == .appTable)
        let problem = try await program.run()
        await program.close()
        if let problem { Issue.record("seed \(seed), \(place): \(problem)\n\(program.log)") }
      }
    }
  }
}

/// The world of one program.
private final class ConvergenceProgram {
  static let user = "00000000-0000-4000-8000-a10000000001"
  static let caller = Caller.user(user)
  static let keys = ["a", "b", "c", "d"]

  private let world: World
  private var clients: [Client] = []

  /// What the transports reach too.
  final class World: Sendable {
    struct State {
      var server: SyncServerState
      var random: SeededRandom
      var isCalm = false
      var log: [String] = []
    }
    let state: Locked<State>

    init(seed: UInt64) {
      let table = SyncTable(
        bucketColumn: "owner_id",
        columns: ["owner_id": .text, "a": .integer, "b": .integer, "c": .text])
      state = Locked(
        State(
          server: SyncServerState(configuration: SyncServerConfiguration(tables: ["t": table])),
          random: SeededRandom(seed)))
    }

    func random<Result: Sendable>(_ body: @Sendable (inout SeededRandom) -> Result) -> Result {
      state.withLock { body(&$0.random) }
    }

    func note(_ text: String) { state.withLock { $0.log.append(text) } }

    var isCalm: Bool {
      get { state.withLock { $0.isCalm } }
      set { state.withLock { $0.isCalm = newValue } }
    }
  }

  init(seed: UInt64, folder: String?, inAppTable: Bool) async throws {
    world = World(seed: seed)
    for index in 0..<2 {
      if inAppTable, let folder {
        let app = try Database(DatabaseConfiguration(path: "\(folder)/\(index).db", role: .writer))
        // Declared types, a generated column, and another unique value that follows the key.
        try app.execute(
          "CREATE TABLE t(id TEXT PRIMARY KEY, c TEXT, a INTEGER, b INT, owner_id TEXT, "
            + "twice AS (a * 2), UNIQUE (id, owner_id))")
        app.close()
      }
      clients.append(try await Client(world, path: folder.map { "\($0)/\(index).db" }, limit: index == 0 ? 2 : 3))
    }
  }

  var log: String { world.state.withLock { $0.log }.suffix(60).joined(separator: "\n") }

  func close() async {
    for client in clients { await client.engine.dispose() }
  }

  func run() async throws -> String? {
    for _ in 0..<40 {
      let client = world.random { $0.below(2) }
      let choice = world.random { $0.below(100) }
      try await clients[client].writeSQL()
      world.note("-- step of client \(client), \(choice)")
      switch choice {
      case ..<32: await clients[client].attempt { try await $0.pushOnce() }
      case ..<62: await clients[client].attempt { try await $0.pullOnce() }
      case ..<70: await clients[client].attempt { try await $0.sync() }
      case ..<84: try await clients[client].writeByLibrary()
      case ..<95: writeOnServer()
      case ..<97: try await reap()
      default: try await clients[client].restart()
      }
      if let problem = try await clients[client].problem() { return problem }
    }
    world.isCalm = true
    for _ in 0..<3 {
      for client in clients { try await client.engine.sync() }
    }
    return try await compare()
  }

  /// Tombstones live far longer than a transfer takes (30 days to 24 hours), so none is reaped during one.
  private func reap() async throws {
    for client in clients {
      guard try await client.engine.withReplica({ try $0.database.meta(.pageCursor).isNull }) else { return }
    }
    world.state.withLock { $0.server.reap(now: nil) }
  }

  private func writeOnServer() {
    world.state.withLock { state in
      let key = state.random.pick(Self.keys)
      let write: SyncWrite =
        state.random.chance(60)
        ? .upsert(
          table: "t", pk: key,
          columns: ["owner_id": .string(Self.user), "a": .int(state.random.below(10))], hlc: nil)
        : .delete(table: "t", pk: key)
      // Deleting what is not there is refused; that is nobody's concern here.
      try? state.server.apply([write], now: 0)
      state.log.append("server \(write)")
    }
  }

  private func compare() async throws -> String? {
    let wanted = world.state.withLock { state in
      Dictionary(uniqueKeysWithValues: Self.keys.compactMap { key in state.server.row("t", key).map { (key, $0) } })
    }
    for (index, client) in clients.enumerated() {
      let rows = try await client.engine.read { try $0.rows("t") }
      let shown = Dictionary(
        uniqueKeysWithValues: rows.map { row in (row.pk, row.columns.filter { $0.key != "id" }) })
      if shown != wanted.mapValues({ $0.filter { $0.key != "id" } }) {
        return "client \(index) shows \(shown)\nserver holds \(wanted)"
      }
      if let left = try await client.leftovers() { return "client \(index): \(left)" }
    }
    return nil
  }

  // MARK: A client

  final class Client: Sendable {
    private let world: World
    private let path: String?
    private let limit: Int
    private let current: Locked<SyncEngine>
    private let transport: Transport

    var engine: SyncEngine { current.withLock { $0 } }

    init(_ world: World, path: String?, limit: Int) async throws {
      self.world = world
      self.path = path
      self.limit = limit
      transport = Transport(world)
      current = Locked(try await Self.open(path, limit, transport))
      transport.meddle.withLock { $0 = { [weak self] in try await self?.writeSQL() } }
    }

    private static func open(_ path: String?, _ limit: Int, _ transport: Transport) async throws -> SyncEngine {
      try await SyncEngine.open(
        config: KizunaSyncClientConfig(
          tables: [
            "t": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["a": .number, "b": .number, "c": .text])
          ],
          databasePath: path,
          remote: KizunaSyncRemoteConfig(
            url: "http://127.0.0.1:1", publishableKey: "key", accessToken: TestToken.user(user)),
          defaultLimit: limit), http: transport, clock: VirtualClock(), log: .none, emit: { _ in })
    }

    func restart() async throws {
      guard path != nil else { return }
      await engine.dispose()
      let fresh = try await Self.open(path, limit, transport)
      current.withLock { $0 = fresh }
    }

    func attempt(_ body: (SyncEngine) async throws -> Void) async {
      try? await body(engine)
    }

    /// A few statements by another program.
    func writeSQL() async throws {
      if world.isCalm { return }
      let statements = world.random { random in (0..<random.below(3)).map { _ in statement(&random) } }
      for statement in statements { world.note("\(limit): \(statement)") }
      if let path {
        let other = try Database(DatabaseConfiguration(path: path, role: .visitor))
        defer { other.close() }
        Self.run(statements, other)
      } else {
        try await engine.withReplica { Self.run(statements, $0.database) }
      }
    }

    private static func run(_ statements: [String], _ database: Database) {
      // A statement that a constraint refuses is part of life.
      for statement in statements { try? database.execute(statement) }
      if database.isInTransaction { try? database.execute("ROLLBACK") }
    }

    private static func statement(_ random: inout SeededRandom) -> String {
      let key = random.pick(keys)
      // 13 as text is nothing the server takes for an integer column.
      let a = random.chance(8) ? "'thirteen'" : "\(random.below(12))"
      let b = random.chance(30) ? "NULL" : "\(random.below(4))"
      switch random.below(8) {
      case 0: return "INSERT INTO t(id, a, b) VALUES ('\(key)', \(a), \(b))"
      case 1: return "INSERT OR REPLACE INTO t(id, a, c) VALUES ('\(key)', \(a), 'x\(random.below(3))')"
      case 2: return "UPDATE t SET a = \(a) WHERE id = '\(key)'"
      case 3: return "UPDATE t SET b = \(b), c = 'y' WHERE id = '\(key)'"
      case 4: return "DELETE FROM t WHERE id = '\(key)'"
      case 5: return "UPDATE OR REPLACE t SET id = '\(random.pick(keys))' WHERE id = '\(key)'"
      case 6:
        return "BEGIN IMMEDIATE; DELETE FROM t WHERE id = '\(key)'; "
          + "INSERT INTO t(id, a, b) VALUES ('\(key)', \(a), \(b)); COMMIT"
      default:
        return "BEGIN IMMEDIATE; INSERT INTO t(id, a) VALUES ('\(key)', \(a)); DELETE FROM t WHERE id = '\(key)'; "
          + (random.chance(30) ? "ROLLBACK" : "COMMIT")
      }
    }

    private func statement(_ random: inout SeededRandom) -> String { Self.statement(&random) }

    func writeByLibrary() async throws {
      let write = world.random { random in
        let key = random.pick(keys)
        switch random.below(6) {
        case 0:
          return LocalWrite(
            table: "t", pk: key, op: .insert, columns: ["id": .string(key), "a": .int(random.below(9)), "c": nil])
        case 1: return LocalWrite(table: "t", pk: key, op: .update, columns: ["a": .int(random.below(9))])
        case 2: return LocalWrite(table: "t", pk: key, op: .delete)
        default:
          return LocalWrite(
            table: "t", pk: key, op: .update, transforms: ["b": ["op": "increment", "by": .int(1 + random.below(3))]])
        }
      }
      world.note("\(limit): library \(write.op) \(write.pk ?? "") \(write.columns) \(write.transforms ?? [:])")
      do {
        try await engine.apply(write)
      } catch let error as KizunaSyncError where error.code == "LOCAL_CONSTRAINT" {
      }
    }

    func problem() async throws -> String? {
      try await engine.withReplica { replica in
        try replica.harvestNow()
        return try replica.brokenInvariants().first
      }
    }

    /// Bookkeeping that must be gone when everything is settled.
    func leftovers() async throws -> String? {
      try await engine.withReplica { replica in
        for table in ["outbox", "image", "pages", "parked", "displaced", "group"] {
          if try replica.database.exists("SELECT 1 FROM _kizunasync_\(table)") { return "\(table) is not empty" }
        }
        return try replica.isHarvestPending() ? "the journal is not empty" : nil
      }
    }
  }

  // MARK: The network between

  final class Transport: HTTPTransport {
    private let world: World
    let meddle = Locked<(@Sendable () async throws -> Void)?>(nil)

    init(_ world: World) {
      self.world = world
    }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
      guard let body = request.json else { throw HTTPError(.other, "no body") }
      let meddle = meddle.withLock { $0 }
      let isCalm = world.isCalm
      try await meddle?()
      world.note("sent \(JSONWriter.text(body))")
      if !isCalm, world.random({ $0.chance(10) }) { throw HTTPError(.connectionLost, "the request was lost") }
      let answer = world.state.withLock { state in
        request.path.hasSuffix("push")
          ? state.server.push(body, caller: caller, now: 0) : state.server.pull(body, caller: caller)
      }
      world.note("answered \(JSONWriter.text(answer.body))")
      if !isCalm, world.random({ $0.chance(15) }) { throw HTTPError(.connectionLost, "the answer was lost") }
      try await meddle?()
      return .json(answer.body, status: answer.status)
    }
  }
}
