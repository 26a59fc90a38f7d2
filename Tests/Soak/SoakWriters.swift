import HostKit

/// Programs on both hosts and another device, writing at random until they are told to stop.
final class SoakWriters: Sendable {
  private struct State {
    var isStopped = false
    var writes = 0
    var failure: String?
  }

  private let state = Locked(State())
  private let tasks: [Task<Void, Never>]

  /// Rows there may be at once; more are replaced.
  private static let keys: UInt64 = 300

  init(_ hosts: [SoakHost], _ server: SoakServer, seed: UInt64) {
    let state = state
    @Sendable func repeatedly(
      _ seed: UInt64, _ write: @escaping @Sendable (inout SeededRandom) async throws -> Void
    ) -> Task<Void, Never> {
      Task {
        var random = SeededRandom(seed)
        while !state.withLock({ $0.isStopped }) {
          do {
            try await write(&random)
            state.withLock { $0.writes += 1 }
          } catch {
            state.withLock { $0.failure = "\(error)" }
          }
          // The pace of the load.
          try? await SystemClock.shared.sleep(nanoseconds: .milliseconds(Double.random(in: 20...400, using: &random)))
        }
      }
    }
    var tasks = hosts.enumerated().map { index, host in
      repeatedly(seed &+ UInt64(index)) { random in try await host.database.run(Self.statement(&random)) }
    }
    tasks.append(
      repeatedly(seed &+ 1_000) { random in
        try await server.write("there-\(random.next() % Self.keys)")
      })
    self.tasks = tasks
  }

  private static func statement(_ random: inout SeededRandom) -> String {
    let key = random.next() % keys
    switch random.next() % 4 {
    case 0:
      return """
        INSERT INTO todos(title, done) SELECT 'row-\(key)', 0
        WHERE NOT EXISTS (SELECT 1 FROM todos WHERE title = 'row-\(key)')
        """
    case 1: return "DELETE FROM todos WHERE title = 'row-\(key)'"
    default: return "UPDATE todos SET done = 1 - coalesce(done, 0) WHERE title = 'row-\(key)'"
    }
  }

  func stop() async -> (writes: Int, failure: String?) {
    state.withLock { $0.isStopped = true }
    for task in tasks { await task.value }
    return state.withLock { ($0.writes, $0.failure) }
  }
}
