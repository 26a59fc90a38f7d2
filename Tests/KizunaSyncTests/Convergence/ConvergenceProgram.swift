import HostKit

@testable import KizunaSync

/// One random program: a server, three clients, and what happens to them.
final class ConvergenceProgram: Sendable {
  static let users = [owner, owner, "00000000-0000-4000-8000-b20000000002"]
  static let keys = ["a", "b", "c", "d"]
  static let teams = ["red", "blue"]

  /// Where the clients keep their replicas.
  enum Place: String, Sendable, CaseIterable {
    case memory, disk
    /// On disk, in a table the app declared.
    case appTable
  }

  struct Step: CustomStringConvertible, Sendable {
    let number: Int
    let client: Int
    let choice: Int
    let seed: UInt64

    var description: String { "step \(number), client \(client): \(Action(choice))" }
  }

  enum Action {
    case push, pull, sync, writeByLibrary, disturb, reap, restart, reset, changeBucket, retry, sweep

    init(_ choice: Int) {
      self =
        switch choice {
        case ..<26: .push
        case ..<50: .pull
        case ..<57: .sync
        case ..<72: .writeByLibrary
        case ..<84: .disturb
        case ..<87: .reap
        case ..<90: .restart
        case ..<92: .reset
        case ..<95: .changeBucket
        case ..<98: .retry
        case ..<100: .sweep
        // Servers that others write to more.
        default: .disturb
        }
    }
  }

  /// - Parameter disturbances: how many choices in so many more than a hundred are those of others.
  static func steps(seed: UInt64, disturbances: Int = 0) -> [Step] {
    var random = SeededRandom(seed)
    return (0..<48).map {
      Step(number: $0, client: random.below(3), choice: random.below(100 + disturbances), seed: random.next())
    }
  }

  private let world: ConvergenceWorld
  private let clients: [ConvergenceClient]

  init(_ server: any ConvergenceServer, folder: String, place: Place) async throws {
    world = ConvergenceWorld(server)
    var clients: [ConvergenceClient] = []
    for index in 0..<3 {
      let path = "\(folder)/\(index).db"
      if place == .appTable {
        let app = try Database(DatabaseConfiguration(path: path, role: .writer))
        // Declared types, a generated column, and another unique value that follows the key.
        try app.execute(
          "CREATE TABLE t(id TEXT PRIMARY KEY, c TEXT, a INTEGER, b INT, owner_id TEXT, "
            + "twice AS (a * 2), UNIQUE (id, owner_id))")
        app.close()
      }
      clients.append(try await ConvergenceClient(world, index: index, path: place == .memory ? nil : path))
    }
    self.clients = clients
  }

  var log: String { world.log }

  /// See `ConvergenceWorld.saw`.
  var seen: Set<String> { world.seen }

  func close() async {
    for client in clients { await client.engine.dispose() }
  }

  /// - Returns: what went wrong.
  func run(_ steps: [Step]) async throws -> String? {
    for step in steps {
      if let problem = try await perform(step) { return problem }
    }
    return try await settleAndCompare()
  }

  /// The same with all clients at once, beside whatever else.
  func runAtOnce(_ steps: [Step], _ others: @escaping @Sendable (ConvergenceWorld) async throws -> Void) async throws
    -> String?
  {
    let problems = try await withThrowingTaskGroup(of: String?.self) { group in
      for client in clients {
        group.addTask { [self] in
          for step in steps where step.client == client.index {
            switch Action(step.choice) {
            // Others write all the time, and who is in the middle of a transfer cannot be told.
            case .disturb, .reap: continue
            default: if let problem = try await perform(step) { return problem }
            }
          }
          return nil
        }
      }
      group.addTask { [world] in
        try await others(world)
        return nil
      }
      return try await group.reduce(into: [String]()) { problems, problem in problems += problem.map { [$0] } ?? [] }
    }
    if let problem = problems.first { return problem }
    return try await settleAndCompare()
  }

  private func perform(_ step: Step) async throws -> String? {
    world.begin(step)
    let client = clients[step.client]
    try await client.writeSQL()
    switch Action(step.choice) {
    case .push: await client.attempt { try await $0.pushOnce() }
    case .pull: await client.attempt { try await $0.pullOnce() }
    case .sync: await client.attempt { try await $0.sync() }
    case .sweep: await client.attempt { try await $0.sweep() }
    case .writeByLibrary: try await client.writeByLibrary()
    case .disturb:
      var random = SeededRandom(world.random { $0.next() })
      try await world.server.disturb(&random, in: world)
      if let problem = try await world.server.problem() { return problem }
    case .reap: try await reap()
    case .restart: try await client.restart()
    case .reset: try await client.reset()
    case .changeBucket: try await client.changeBucket()
    case .retry: try await client.retry()
    }
    return try await client.problem()
  }

  private func settleAndCompare() async throws -> String? {
    world.calm()
    // Once while others are in the middle of something, which they end behind the clients' backs.
    for client in clients { try await client.engine.sync() }
    try await world.server.settle(in: world)
    for _ in 0..<3 {
      for client in clients { try await client.engine.sync() }
    }
    if let problem = try await world.server.problem() { return problem }
    if let problem = try await world.accounts() { return problem }
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
    try await world.server.reap()
  }
}
