import Foundation
import HostKit
import PhoenixChannels
import Testing

/// Random histories: whatever owner, network and server do, the machine's rules hold after each event, and a healthy
/// server at the end is always reached again. A history that fails is made small and printed as a test.
///
/// `KIZUNA_SEQUENCES` sets how many (default 1000), `KIZUNA_SEED` runs one seed alone.
@Suite struct GeneratedSequenceTests {
  @Test func rulesHoldInRandomHistories() async {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["KIZUNA_SEED"].flatMap({ UInt64($0) }) {
      if let report = Self.report(seed) { Issue.record("\(report)") }
      return
    }
    let count = environment["KIZUNA_SEQUENCES"].flatMap { UInt64($0) } ?? 1_000
    let share: UInt64 = 100
    await withTaskGroup(of: UInt64?.self) { group in
      for first in stride(from: 1, through: count, by: Int(share)) {
        group.addTask {
          (first..<min(first + share, count + 1)).first { SequenceGenerator.sequence(seed: $0).failure() != nil }
        }
      }
      for await failed in group {
        guard let failed else { continue }
        if let report = Self.report(failed) { Issue.record("\(report)") }
        group.cancelAll()
        return
      }
    }
  }

  private static func report(_ seed: UInt64) -> String? {
    let sequence = SequenceGenerator.sequence(seed: seed)
    guard let failure = sequence.failure() else { return nil }
    let small = SequenceShrinker { $0.failure() != nil }.shrink(sequence)
    return """
      KIZUNA_SEED=\(seed), \(sequence.steps.count) steps: \(failure)
      \(small.steps.count) of them are enough; as a test:

      \(small.source(named: "sequence\(seed)"))

      \(small.explanation() ?? "it does not fail any more")
      """
  }

  /// Histories that never get anywhere would prove nothing.
  @Test func theHistoriesReachEverything() {
    var total = MachineDriver().lastStatus.counters
    var states: Set<String> = []
    var longest = 0
    var lastState: ConnectionStatus.State?
    var lastTopics: [ChannelTopic: ConnectionStatus.TopicState] = [:]
    for seed in 1...200 as ClosedRange<UInt64> {
      let sequence = SequenceGenerator.sequence(seed: seed)
      longest = max(longest, sequence.steps.count)
      var run = SequenceRun(sequence)
      for step in sequence.steps {
        run.apply(step)
        run.driver.forget()
        let status = run.driver.lastStatus
        if status.state != lastState {
          lastState = status.state
          states.insert(Self.name(status.state))
        }
        for topic in status.topics where lastTopics[topic.topic] != topic.state {
          lastTopics[topic.topic] = topic.state
          states.insert("topic " + Self.name(topic.state))
        }
      }
      let counters = run.driver.lastStatus.counters
      total.attempts = max(total.attempts, counters.attempts)
      total.joinsAccepted += counters.joinsAccepted
      total.joinsRefused += counters.joinsRefused
      total.joinsUnanswered += counters.joinsUnanswered
      total.heartbeatsMissed += counters.heartbeatsMissed
      total.framesUnmatched += counters.framesUnmatched
      total.framesOversized += counters.framesOversized
      total.tokensPushed += counters.tokensPushed
      total.socketsReplaced += counters.socketsReplaced
    }
    #expect(longest == 200)
    #expect(
      states == [
        "stopped", "disconnected", "connecting", "open", "backingOff", "awaitingCredentials", "suspended",
        "topic idle", "topic joining", "topic joined", "topic backingOff", "topic denied",
      ])
    #expect(total.attempts > 20)
    #expect(total.joinsAccepted > 500)
    #expect(total.joinsRefused > 100)
    #expect(total.joinsUnanswered > 100)
    #expect(total.heartbeatsMissed > 50)
    #expect(total.framesUnmatched > 100)
    #expect(total.framesOversized > 10)
    #expect(total.tokensPushed > 10)
    #expect(total.socketsReplaced > 0)
  }

  private static func name(_ state: ConnectionStatus.State) -> String {
    String("\(state)".prefix { $0 != "(" })
  }

  private static func name(_ state: ConnectionStatus.TopicState) -> String {
    String("\(state)".prefix { $0 != "(" })
  }
}
