import HTTPClient
import HostKit
import KizunaSyncTestSupport
import SyncServer

@testable import KizunaSync

/// The world of one random program: a server, three clients, and what happens to them.
final class ConvergenceProgram {
  static let users = [owner, owner, "00000000-0000-4000-8000-b20000000002"]
  static let keys = ["a", "b", "c", "d"]
  static let teams = ["red", "blue"]

  /// One step with random numbers of its own, so that leaving others out does not change it.
  struct Step: CustomStringConvertible {
    let number: Int
    let client: Int
    let choice: Int
    let seed: UInt64

    var description: String { "step \(number), client \(client): \(Action(choice))" }
  }

  enum Action {
    case push, pull, sync, writeByLibrary, otherDevice, reap, restart, reset, changeBucket, retry, sweep

    init(_ choice: Int) {
      self =
        switch choice {
        case ..<26: .push
        case ..<50: .pull
        case ..<57: .sync
        case ..<72: .writeByLibrary
        case ..<84: .otherDevice
        case ..<87: .reap
        case ..<90: .restart
        case ..<92: .reset
        case ..<95: .changeBucket
        case ..<98: .retry
        default: .sweep
        }
    }
  }

  static func steps(seed: UInt64) -> [Step] {
    var random = SeededRandom(seed)
    return (0..<48).map { Step(number: $0, client: random.below(3), choice: random.below(100), seed: random.next()) }
  }

  private let world = World()
  private var clients: [ConvergenceClient] = []

  /// What the transports reach too.
  final class World: Sendable {
    struct State {
      var server: SyncServerState
      var random = SeededRandom(0)
      var isCalm = false
      var log: [String] = []
      /// Keys of the table `log` that anybody has written.
      var logged: Set<String> = []
    }
    let state: Locked<State>

    init() {
      let tables = [
        "t": SyncTable(
          bucketColumn: "owner_id", columns: ["owner_id": .text, "a": .integer, "b": .integer, "c": .text]),
        // A row's reader is not its bucket: it may be hidden without a tombstone.
        "p": SyncTable(
          bucketColumn: "team", policy: .owner(column: "reader"),
          columns: ["team": .text, "reader": .text, "a": .integer]),
        "log": SyncTable(bucketColumn: "owner_id", columns: ["owner_id": .text]),
      ]
      state = Locked(State(server: SyncServerState(configuration: SyncServerConfiguration(tables: tables))))
    }

    func random<Result: Sendable>(_ body: @Sendable (inout SeededRandom) -> Result) -> Result {
      state.withLock { body(&$0.random) }
    }

    func note(_ text: String) { state.withLock { $0.log.append(text) } }

    var isCalm: Bool { state.withLock { $0.isCalm } }

    /// What the server shows.
    func shown(to user: String, team: String) -> [String: [String: RowMap]] {
      state.withLock { state in
        func rows(_ table: String, _ keys: some Sequence<String>, _ isShown: (RowMap) -> Bool) -> [String: RowMap] {
          Dictionary(
            uniqueKeysWithValues: keys.compactMap { key in
              state.server.row(table, key).flatMap { isShown($0) ? (key, $0) : nil }
            })
        }
        let isOwn = { (row: RowMap) in row["owner_id"] == .string(user) }
        return [
          "t": rows("t", ConvergenceProgram.keys, isOwn), "log": rows("log", state.logged, isOwn),
          "p": rows("p", ConvergenceProgram.keys) { $0["team"] == .string(team) && $0["reader"] == .string(user) },
        ]
      }
    }

    /// The ids that the server has decided.
    func decided() -> Set<String> {
      let lines = state.withLock { $0.server.dump() }.split(separator: "\n")
      return Set(lines.filter { $0.hasPrefix("verdict ") }.map { String($0.split(separator: " ")[1]) })
    }
  }

  init(folder: String?, inAppTable: Bool) async throws {
    for index in 0..<3 {
      if inAppTable, let folder {
        let app = try Database(DatabaseConfiguration(path: "\(folder)/\(index).db", role: .writer))
        // Declared types, a generated column, and another unique value that follows the key.
        try app.execute(
          "CREATE TABLE t(id TEXT PRIMARY KEY, c TEXT, a INTEGER, b INT, owner_id TEXT, "
            + "twice AS (a * 2), UNIQUE (id, owner_id))")
        app.close()
      }
      clients.append(try await ConvergenceClient(world, index: index, path: folder.map { "\($0)/\(index).db" }))
    }
  }

  var log: String { world.state.withLock { $0.log }.suffix(80).joined(separator: "\n") }

  func close() async {
    for client in clients { await client.engine.dispose() }
  }

  func run(_ steps: [Step]) async throws -> String? {
    for step in steps {
      world.state.withLock { state in
        state.random = SeededRandom(step.seed)
        state.log.append("-- \(step)")
      }
      let client = clients[step.client]
      try await client.writeSQL()
      switch Action(step.choice) {
      case .push: await client.attempt { try await $0.pushOnce() }
      case .pull: await client.attempt { try await $0.pullOnce() }
      case .sync: await client.attempt { try await $0.sync() }
      case .sweep: await client.attempt { try await $0.sweep() }
      case .writeByLibrary: try await client.writeByLibrary()
      case .otherDevice: writeOnServer()
      case .reap: try await reap()
      case .restart: try await client.restart()
      case .reset: try await client.reset()
      case .changeBucket: try await client.changeBucket()
      case .retry: try await client.retry()
      }
      if let problem = try await client.problem() { return problem }
    }
    return try await settleAndCompare()
  }

  private func settleAndCompare() async throws -> String? {
    world.state.withLock { $0.isCalm = true }
    for _ in 0..<3 {
      for client in clients { try await client.engine.sync() }
    }
    for client in clients {
      if let problem = try await client.comparison(isSwept: false) { return problem }
    }
    // What was hidden without a tombstone goes with a sweep.
    for client in clients { try await client.engine.sweep() }
    for client in clients {
      if let problem = try await client.comparison(isSwept: true) { return problem }
      if let left = try await client.leftovers() { return left }
    }
    return nil
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
      let user = JSONValue.string(state.random.pick(Self.users))
      let number = JSONValue.int(state.random.below(10))
      let write: SyncWrite =
        switch state.random.below(10) {
        case ..<4: .upsert(table: "t", pk: key, columns: ["owner_id": user, "a": number])
        case 4: .delete(table: "t", pk: key)
        case 5: .upsert(table: "p", pk: key, columns: ["reader": user])
        case 6: .delete(table: "p", pk: key)
        default:
          .upsert(
            table: "p", pk: key,
            columns: ["team": .string(state.random.pick(Self.teams)), "reader": user, "a": number])
        }
      // Half a row of `p` would be nobody's.
      if case .upsert("p", _, let columns, _) = write, columns.count == 1, state.server.row("p", key) == nil { return }
      // Deleting what is not there is refused; that is nobody's concern here.
      try? state.server.apply([write], now: 0)
      state.log.append("server \(write)")
    }
  }
}
