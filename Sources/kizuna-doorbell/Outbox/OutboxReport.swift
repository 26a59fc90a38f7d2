import HostKit
import KizunaSync

/// What `outbox retry` and `outbox discard` print, and the exit code that goes with it.
struct OutboxReport {
  private let outcome: KizunaSyncOutbox.Outcome

  init(_ outcome: KizunaSyncOutbox.Outcome) {
    self.outcome = outcome
  }

  /// - Parameter arguments: the command's, which say how results and errors are written.
  func print(_ arguments: Arguments) -> ExitCode {
    if arguments.flag("json") {
      StandardStreams.print(JSONWriter.text(json))
    } else {
      for line in text { StandardStreams.print(line) }
    }
    let code: ExitCode = !outcome.unknown.isEmpty ? .failure : outcome.failed.isEmpty ? .ok : .workLeft
    let problems =
      outcome.unknown.map { "no refused write has the id \($0); outbox list shows them" }
      + outcome.failed.sorted { $0.key < $1.key }.map { "\($0.key) cannot be queued again: \($0.value)" }
    for problem in problems {
      LogOutput.printFailure(problem, code, program: "kizuna-doorbell", arguments: arguments)
    }
    return code
  }

  private var json: JSONValue {
    [
      "retried": .array(
        outcome.retried.map {
          ["mutation_id": .string($0.mutationId), "queued_as": .array($0.queuedAs.map(JSONValue.string))]
        }),
      "discarded": .array(outcome.discarded.map(JSONValue.string)),
      "unknown": .array(outcome.unknown.map(JSONValue.string)),
      "failed": .object(outcome.failed.mapValues(JSONValue.string)),
    ]
  }

  private var text: [String] {
    let lines =
      outcome.retried.map { "queued     \($0.mutationId) as \(Counted.list($0.queuedAs, "write"))" }
      + outcome.discarded.map { "discarded  \($0)" }
    let isNothing = lines.isEmpty && outcome.unknown.isEmpty && outcome.failed.isEmpty
    return isNothing ? ["there are no refused writes"] : lines
  }
}
