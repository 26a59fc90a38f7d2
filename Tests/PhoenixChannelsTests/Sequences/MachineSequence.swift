import HostKit
import PhoenixChannels
import Testing

/// A history of a machine: what happens to it in turn. After the last step everything works, and what is wanted must
/// come into service; then a stop must end it all.
struct MachineSequence: Sendable, Hashable {
  var usesCredentials = true
  /// Frames of the server carry no `join_ref`.
  var isVersion1 = false
  /// Seed of the machine's draws; nil draws the longest delays.
  var chance: UInt64?
  var steps: [MachineStep]

  /// What went wrong first, in words; nil when all rules held.
  func failure() -> String? {
    var run = SequenceRun(self)
    return run.failure()
  }

  /// What went wrong, with the events and effects that led there.
  func explanation() -> String? {
    var run = SequenceRun(self)
    run.driver.isTracing = true
    return run.failure().map { $0 + "\n" + run.driver.trace() }
  }

  func expectRules(sourceLocation: SourceLocation = #_sourceLocation) {
    if let explanation = explanation() { Issue.record("\(explanation)", sourceLocation: sourceLocation) }
  }

  /// A test, ready to be pasted.
  func source(named name: String) -> String {
    """
      @Test func \(name)() {
        MachineSequence(
          usesCredentials: \(usesCredentials), isVersion1: \(isVersion1), chance: \(chance.map { "\($0)" } ?? "nil"),
          steps: [
    \(steps.map { "        " + $0.source }.joined(separator: ",\n")),
          ]
        ).expectRules()
      }
    """
  }
}
