import HostKit

/// What the clients of a random program share: the server, chance, and the book of what happened.
final class ConvergenceWorld: Sendable {
  private struct Increment {
    var key: String
    var by: Int
  }

  private struct State {
    var random = SeededRandom(0)
    var isCalm = false
    var log: [String] = []
    /// Increments of counters in `log` that were sent, by mutation id.
    var increments: [String: Increment] = [:]
    /// What clients were told of their writes, by mutation id.
    var acknowledged: [String: String] = [:]
    var problem: String?
    var seen: Set<String> = []
    var answers = 0
  }

  let server: any ConvergenceServer
  private let state = Locked(State())

  init(_ server: any ConvergenceServer) { self.server = server }

  /// Each step has random numbers of its own, so that leaving others out does not change it.
  func begin(_ step: ConvergenceProgram.Step) {
    state.withLock { state in
      state.random = SeededRandom(step.seed)
      state.log.append("-- \(step)")
    }
  }

  func random<Result: Sendable>(_ body: @Sendable (inout SeededRandom) -> Result) -> Result {
    state.withLock { body(&$0.random) }
  }

  func note(_ text: String) { state.withLock { $0.log.append(text) } }

  /// Something that programs are to reach has happened.
  func saw(_ event: String) { _ = state.withLock { $0.seen.insert(event) } }

  var seen: Set<String> { state.withLock { $0.seen } }

  /// How many requests were answered.
  var answers: Int { state.withLock { $0.answers } }

  var log: String { state.withLock { $0.log }.suffix(90).joined(separator: "\n") }

  /// The end of a program: nothing is lost any more, and nobody else writes.
  var isCalm: Bool { state.withLock { $0.isCalm } }

  func calm() { state.withLock { $0.isCalm = true } }

  // MARK: Writes and verdicts

  func noteSent(_ push: JSONValue) {
    for mutation in push["batch"]?["mutations"]?.arrayValue ?? [] {
      guard let id = mutation["mutation_id"]?.stringValue, mutation["table"] == "log",
        let by = mutation["transforms"]?["n"]?["by"]?.intValue
      else { continue }
      state.withLock { $0.increments[id] = Increment(key: mutation["pk"]?.stringValue ?? "", by: by) }
    }
  }

  /// A verdict is final: whoever asks again is told the same.
  func noteAnswer(_ answer: JSONValue) {
    state.withLock { $0.answers += 1 }
    if let signal = answer["signal"]?["type"]?.stringValue { saw(signal) }
    for verdict in answer["verdicts"]?.arrayValue ?? [] {
      guard let id = verdict["mutation_id"]?.stringValue else { continue }
      let text = verdict["reason"]?.stringValue ?? verdict["verdict"]?.stringValue ?? ""
      saw(text)
      state.withLock { state in
        if let before = state.acknowledged.updateValue(text, forKey: id), before != text {
          state.problem = "\(id) was acknowledged as \(before), then as \(text)"
        }
      }
    }
  }

  /// Every acknowledgement is in the server's book, and every applied increment counts once.
  func accounts() async throws -> String? {
    let (verdicts, rows) = (try await server.verdicts(), try await server.rows("log"))
    let (acknowledged, increments, problem) = state.withLock { ($0.acknowledged, $0.increments, $0.problem) }
    if let problem { return problem }
    for (id, verdict) in acknowledged where verdicts[id] != verdict {
      return "\(id) was acknowledged as \(verdict), but the server has \(verdicts[id] ?? "nothing")"
    }
    var sums: [String: Int] = [:]
    for (id, increment) in increments where verdicts[id] == "applied" {
      sums[increment.key, default: 0] += increment.by
    }
    for (key, row) in rows where row["n"]?.intValue ?? 0 != sums[key] ?? 0 {
      return "counter \(key) holds \(row["n"] ?? .null), and the increments that were applied make \(sums[key] ?? 0)"
    }
    return nil
  }
}
