import HostKit
import KizunaSyncTestSupport

@testable import KizunaSync

/// One client of a random program, with what must become of its writes.
final class ConvergenceClient: Sendable {
  private struct State {
    var engine: SyncEngine
    var team: String
    /// Keys of `log` that were committed here and not wiped by a reset.
    var logged: Set<String> = []
    var nextLog = 0
    /// Ids of library writes that were not wiped by a reset.
    var minted: Set<String> = []
  }

  let index: Int
  private let world: ConvergenceWorld
  private let path: String?
  private let state: Locked<State>
  private let transport: ConvergenceTransport

  var engine: SyncEngine { state.withLock { $0.engine } }
  private var user: String { ConvergenceProgram.users[index] }

  init(_ world: ConvergenceWorld, index: Int, path: String?) async throws {
    self.world = world
    self.index = index
    self.path = path
    transport = ConvergenceTransport(world, user: ConvergenceProgram.users[index], index: index)
    state = Locked(State(engine: try await Self.open(world, index, path, transport), team: "red"))
    try await engine.setBucket(["team": "red"])
    transport.meddle.withLock { $0 = { [weak self] in try await self?.writeSQL() } }
  }

  private static func open(
    _ world: ConvergenceWorld, _ index: Int, _ path: String?, _ transport: ConvergenceTransport
  ) async throws -> SyncEngine {
    try await SyncEngine.open(
      config: KizunaSyncClientConfig(
        tables: [
          "t": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["a": .number, "b": .number, "c": .text]),
          "p": KizunaSyncTableConfig(
            bucket: .byColumn("team"), columns: ["a": .number, "team": .text, "reader": .text]),
          "log": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["n": .number]),
        ],
        databasePath: path, remote: world.server.remote(for: ConvergenceProgram.users[index]),
        defaultLimit: index + 2), http: transport, clock: VirtualClock(), log: .none, emit: { _ in })
  }

  private func note(_ text: String) { world.note("\(index): \(text)") }

  // MARK: What happens to it

  func attempt(_ body: (SyncEngine) async throws -> Void) async {
    do { try await body(engine) } catch { note("failed: \(error)") }
  }

  func restart() async throws {
    guard path != nil else { return }
    await engine.dispose()
    let fresh = try await Self.open(world, index, path, transport)
    try await fresh.setBucket(["team": .string(state.withLock { $0.team })])
    state.withLock { $0.engine = fresh }
  }

  /// Wipes what was not sent.
  func reset() async throws {
    try await engine.reset()
    let (logged, verdicts) = (try await world.server.rows("log"), try await world.server.verdicts())
    state.withLock { state in
      state.logged = state.logged.filter { logged[$0] != nil }
      state.minted = state.minted.filter { verdicts[$0] != nil }
    }
  }

  func changeBucket() async throws {
    let team = world.random { $0.pick(ConvergenceProgram.teams) }
    note("team \(team)")
    try await engine.setBucket(["team": .string(team)])
    state.withLock { $0.team = team }
  }

  /// Half of the refused writes are tried again, the others given up.
  func retry() async throws {
    for rejection in try await engine.rejections(includeDismissed: false) {
      if world.random({ $0.chance(50) }) {
        do {
          let ids = try await engine.retryRejection(rejection.mutationId)
          note("retried \(rejection.pk)")
          state.withLock { state in
            // A write that was never decided keeps its id, another one has had its verdict.
            state.minted.formUnion(ids)
          }
        } catch let error as KizunaSyncError where error.code == "LOCAL_CONSTRAINT" {
        }
      } else {
        _ = try await engine.dismissRejection(rejection.mutationId)
      }
    }
  }

  func writeByLibrary() async throws {
    let (index, user) = (index, user)
    let logged = state.withLock { $0.logged.sorted() }
    let write = world.random { random in
      let key = random.pick(ConvergenceProgram.keys)
      let table = random.chance(65) ? "t" : "p"
      var write = LocalWrite(table: table, pk: key, op: .update)
      switch random.below(7) {
      case 0:
        write.op = .insert
        write.columns = ["id": .string(key), "a": .int(random.below(9))]
        if table == "t" { write.columns["c"] = .null }
        if table == "p" {
          write.columns["team"] = .string(random.pick(ConvergenceProgram.teams))
          write.columns["reader"] = .string(user)
        }
      case 1:
        write.columns = ["a": .int(random.below(9))]
        if table == "p", random.chance(40) { write.columns["team"] = .string(random.pick(ConvergenceProgram.teams)) }
      case 2: write.op = .delete
      // A counter that nobody else touches.
      case 3 where !logged.isEmpty:
        write.table = "log"
        write.pk = random.pick(logged)
        write.transforms = ["n": ["op": "increment", "by": .int(1 + random.below(9))]]
      default: write.transforms = [table == "t" ? "b" : "a": ["op": "increment", "by": .int(1 + random.below(3))]]
      }
      let number = random.next() % 1_000_000_000_000
      let digits = String(number)
      write.mutationID =
        "0000000\(index)-0000-4000-8000-\(String(repeating: "0", count: 12 - digits.count))\(digits)"
      return write
    }
    note("library \(write.table) \(write.op) \(write.pk ?? "") \(write.columns) \(write.transforms ?? [:])")
    do {
      try await engine.apply(write)
      _ = state.withLock { $0.minted.insert(write.mutationID ?? "") }
    } catch let error as KizunaSyncError where error.code == "LOCAL_CONSTRAINT" {
    }
  }

  // MARK: Plain SQL

  /// A few statements by another program.
  func writeSQL() async throws {
    if world.isCalm { return }
    let user = user
    let statements = world.random { random in (0..<random.below(3)).map { _ in Self.statement(&random, user) } }
    for statement in statements { note(statement) }
    let entry = world.random { $0.chance(25) } ? logKey() : nil
    if let path {
      let other = try Database(DatabaseConfiguration(path: path, role: .visitor))
      defer { other.close() }
      run(statements, entry, other)
    } else {
      try await engine.withReplica { run(statements, entry, $0.database) }
    }
  }

  private func logKey() -> String {
    state.withLock { state in
      state.nextLog += 1
      return "\(index)-\(state.nextLog)"
    }
  }

  private func run(_ statements: [String], _ entry: String?, _ database: Database) {
    // A statement that a constraint refuses is part of life.
    for statement in statements { try? database.execute(statement) }
    if database.isInTransaction { try? database.execute("ROLLBACK") }
    guard let entry, (try? database.execute("INSERT INTO log(id) VALUES ('\(entry)')")) != nil else { return }
    _ = state.withLock { $0.logged.insert(entry) }
  }

  private static func statement(_ random: inout SeededRandom, _ user: String) -> String {
    let key = random.pick(ConvergenceProgram.keys)
    // 13 as text is nothing the server takes for an integer column.
    let a = random.chance(8) ? "'thirteen'" : "\(random.below(12))"
    let b = random.chance(30) ? "NULL" : "\(random.below(4))"
    let team = random.pick(ConvergenceProgram.teams)
    switch random.below(12) {
    case 0: return "INSERT INTO t(id, a, b) VALUES ('\(key)', \(a), \(b))"
    case 1: return "INSERT OR REPLACE INTO t(id, a, c) VALUES ('\(key)', \(a), 'x\(random.below(3))')"
    case 2: return "UPDATE t SET a = \(a) WHERE id = '\(key)'"
    case 3: return "UPDATE t SET b = \(b), c = 'y' WHERE id = '\(key)'"
    case 4: return "DELETE FROM t WHERE id = '\(key)'"
    case 5: return "UPDATE OR REPLACE t SET id = '\(random.pick(ConvergenceProgram.keys))' WHERE id = '\(key)'"
    case 6:
      return "BEGIN IMMEDIATE; DELETE FROM t WHERE id = '\(key)'; "
        + "INSERT INTO t(id, a, b) VALUES ('\(key)', \(a), \(b)); COMMIT"
    case 7:
      return "BEGIN IMMEDIATE; INSERT INTO t(id, a) VALUES ('\(key)', \(a)); DELETE FROM t WHERE id = '\(key)'; "
        + (random.chance(30) ? "ROLLBACK" : "COMMIT")
    case 8: return "INSERT OR REPLACE INTO p(id, team, reader, a) VALUES ('\(key)', '\(team)', '\(user)', \(a))"
    case 9: return "UPDATE p SET a = \(a) WHERE id = '\(key)'"
    case 10: return "UPDATE p SET team = '\(team)' WHERE id = '\(key)'"
    default: return "DELETE FROM p WHERE id = '\(key)'"
    }
  }

  // MARK: What must hold

  func problem() async throws -> String? {
    if let found = transport.problem.withLock({ $0 }) { return "client \(index): \(found)" }
    return try await engine.withReplica { replica in
      try replica.harvestNow()
      return try replica.brokenInvariants().first.map { "client \(index): \($0)" }
    }
  }

  /// - Parameter isSwept: until then, rows that were hidden without a tombstone may still be there.
  func comparison(isSwept: Bool) async throws -> String? {
    let team = state.withLock { $0.team }
    let server = try await world.server.shown(to: user, team: team)
    for (table, rows) in server.tables.sorted(by: { $0.key < $1.key }) {
      var wanted = rows.mapValues { $0.filter { $0.key != "id" } }
      let own = try await engine.read { try $0.rows(table) }
      var shown = Dictionary(uniqueKeysWithValues: own.map { ($0.pk, $0.columns.filter { $0.key != "id" }) })
      if table == "p", !isSwept {
        wanted = wanted.filter { !server.unannounced.contains($0.key) }
        shown = shown.filter { wanted[$0.key] != nil }
      }
      if shown != wanted {
        return "client \(index), \(isSwept ? "swept" : "synced"), \(table): shows \(shown)\nserver shows \(wanted)"
      }
    }
    let (logged, minted) = state.withLock { ($0.logged, $0.minted) }
    let served = try await world.server.rows("log")
    if let lost = logged.first(where: { served[$0] == nil }) { return "client \(index) lost log \(lost)" }
    let refused = Set(try await engine.rejections(includeDismissed: true).map(\.mutationId))
    let decided = try await world.server.verdicts()
    if let lost = minted.first(where: { decided[$0] == nil && !refused.contains($0) }) {
      return "client \(index) lost the write \(lost)"
    }
    return nil
  }

  /// Bookkeeping that must be gone when everything is settled.
  func leftovers() async throws -> String? {
    try await engine.withReplica { replica in
      for table in ["outbox", "image", "pages", "parked", "displaced", "group"] {
        if try replica.database.exists("SELECT 1 FROM _kizunasync_\(table)") {
          return "client \(index): \(table) is not empty"
        }
      }
      return try replica.isHarvestPending() ? "client \(index): the journal is not empty" : nil
    }
  }
}
