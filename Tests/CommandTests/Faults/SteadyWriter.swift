import Glibc
import HostKit

/// A program that changes a fixed set of rows of some databases again and again, until it is told to stop.
final class SteadyWriter: Sendable {
  private struct State {
    var isStopped = false
    var isPaused = false
    var failure: String?
    var writes = 0
  }

  private let state = Locked(State())
  private let ended = Signal()

  /// - Parameters:
  ///   - titles: of rows that exist in all of the databases.
  ///   - column: which is changed between 0 and 1.
  init(_ databases: [String], titles: [String], column: String = "done", seed: UInt64) {
    let (state, ended) = (state, ended)
    HostThread.detach(name: "steady-writer") {
      var random = SeededRandom(seed)
      while true {
        let now = state.withLock { ($0.isStopped, $0.isPaused) }
        if now.0 { break }
        // The pace of the load, not a wait for anything.
        usleep(now.1 ? 10_000 : 5_000)
        if now.1 { continue }
        let database = databases[Int(random.next() % UInt64(databases.count))]
        let title = titles[Int(random.next() % UInt64(titles.count))]
        do {
          try PlainSQL.run(
            database, "UPDATE todos SET \(column) = 1 - (coalesce(\(column), 0) <> 0) WHERE title = '\(title)'")
          state.withLock { $0.writes += 1 }
        } catch {
          state.withLock { $0.failure = "\(error)" }
          break
        }
      }
      ended.raise()
    }
  }

  func pause() { state.withLock { $0.isPaused = true } }
  func goOn() { state.withLock { $0.isPaused = false } }
  var writes: Int { state.withLock { $0.writes } }

  /// - Returns: why it ended early, if it did.
  func stop() async -> String? {
    state.withLock { $0.isStopped = true }
    let ended = ended
    await withCheckedContinuation { continuation in
      HostThread.detach(name: "writer-end") {
        ended.wait()
        continuation.resume()
      }
    }
    return state.withLock { $0.failure }
  }
}
