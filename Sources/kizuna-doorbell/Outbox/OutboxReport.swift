import HostKit
import KizunaSync

/// What `outbox retry` and `outbox discard` print, and the exit code that goes with it.
struct OutboxReport {
  private let outcome: KizunaSyncOutbox.Outcome

  init(_ outcome: KizunaSyncOutbox.Outcome) {
    self.outcome = outcome
  }

  func print(asJSON: Bool) -> ExitCode {
    if asJSON {
      StandardStreams.print(JSONWriter.text(json))
    } else {
      for line in text { StandardStreams.print(line) }
    }
    for id in outcome.unknown {
      StandardStreams.printError("kizuna-doorbell: no refused write has the id \(id); outbox list shows them")
    }
    for (id, reason) in outcome.failed.sorted(by: { $0.key < $1.key }) {
      StandardStreams.printError("kizuna-doorbell: \(id) cannot be queued again: \(reason)")
    }
    if !outcome.unknown.isEmpty { return .failure }
    return outcome.failed.isEmpty ? .ok : .workLeft
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
