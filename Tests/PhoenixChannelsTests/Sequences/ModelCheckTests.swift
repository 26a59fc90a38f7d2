import Foundation
import PhoenixChannels
import Testing

/// Two topics, and everything that can happen to them: every state that a few events can lead to is visited once
/// (breadth first), and all rules are checked at every event, whichever state it comes in.
///
/// `KIZUNA_DEPTH` sets how many events, from each of the beginnings.
@Suite struct ModelCheckTests {
  /// Every event that two topics know, once with the right reference and once with another join's.
  static let steps: [MachineStep] =
    [
      .start, .stop, .token(1), .token(2), .withdrawn, .unavailable, .opened, .failed(isConfiguration: false),
      .closed(1012), .refused(401, retryAfter: nil, body: nil), .late(.closed), .late(.answer("a")),
      .hint(.pathSatisfied), .hint(.pathUnsatisfied), .hint(.manual), .heartbeatAnswer(.current),
      .heartbeatAnswer(.previous), .undecodable, .oversized, .nextTimer, .staleTimer(0),
    ]
    + ["a", "b"].flatMap { topic -> [MachineStep] in
      [
        .subscribe(topic), .unsubscribe(topic), .answer(topic, .current, status: "ok", reason: nil),
        .answer(topic, .previous, status: "ok", reason: nil), .answer(topic, .leave, status: "ok", reason: nil),
        .answer(topic, .current, status: "error", reason: "UnableToConnectToProject: no"),
        .answer(topic, .current, status: "error", reason: "InvalidJWTToken: Token has expired 3 seconds ago"),
        .answer(topic, .current, status: "error", reason: "Unauthorized: no"),
        .answer(topic, .current, status: "error", reason: "RealtimeRestarting: wait"), .close(topic, .current),
        .close(topic, .previous), .error(topic, .current), .event("broadcast", topic, .none),
      ]
    }

  struct Beginning: Sendable, CustomTestStringConvertible {
    let name: String
    let steps: [MachineStep]
    /// How many events more.
    let depth: Int
    var testDescription: String { name }
  }

  static let beginnings: [Beginning] = [
    Beginning(name: "nothing", steps: [], depth: 5),
    Beginning(name: "connecting", steps: [.subscribe("a"), .subscribe("b"), .start], depth: 4),
    Beginning(name: "joining", steps: [.subscribe("a"), .subscribe("b"), .start, .token(1), .opened], depth: 3),
    Beginning(
      name: "joined",
      steps: [
        .subscribe("a"), .subscribe("b"), .start, .token(1), .opened,
        .answer("a", .current, status: "ok", reason: nil), .answer("b", .current, status: "ok", reason: nil),
      ], depth: 3),
    Beginning(
      name: "closing", steps: [.subscribe("a"), .subscribe("b"), .start, .token(1), .opened, .withdrawn],
      depth: 4),
  ]

  @Test(arguments: beginnings)
  func everyStateKeepsTheRules(beginning: Beginning) {
    let depth = ProcessInfo.processInfo.environment["KIZUNA_DEPTH"].flatMap { Int($0) } ?? beginning.depth
    var check = ModelCheck(beginning.steps)
    for _ in 0..<depth {
      guard let failure = check.goOn(Self.steps) else { continue }
      let small = SequenceShrinker { $0.failure() != nil }.shrink(failure.sequence)
      Issue.record(
        """
        \(failure.text)

        \(small.source(named: "found"))

        \(small.explanation() ?? failure.sequence.source(named: "found"))
        """)
      return
    }
    print(
      "model check from \"\(beginning.name)\": \(check.stateCount) states, \(check.eventCount) events, depth \(depth)")
    // Sanitizers look less deep.
    #expect(depth < beginning.depth || check.stateCount > 100)
  }

  /// Guards `CanonicalState`: a field that it does not know could make two different states look the same.
  @Test func theCanonicalStateKnowsEveryField() {
    for (value, written, leftOut) in CanonicalState.fields {
      let labels = Mirror(reflecting: value).children.compactMap(\.label)
      #expect(Set(labels) == Set(written + leftOut), "\(type(of: value))")
    }
  }

  @Test func whatMakesNoDifferenceIsOneState() {
    func joined(after seconds: Double, restarts: Int) -> MachineDriver {
      var driver = MachineDriver()
      driver.sleep(seconds)
      for topic in ["a", "b"] { driver.subscribe(topic) }
      for _ in 0..<restarts {
        driver.feed(.start)
        driver.feed(.stop)
        driver.feed(.closed(code: 1000, reason: ""))
      }
      driver.feed(.start)
      driver.feed(.credentials(.token("t")))
      driver.feed(.opened)
      driver.acceptJoins()
      return driver
    }
    let early = joined(after: 0, restarts: 1)
    var late = joined(after: 500, restarts: 3)
    #expect(CanonicalState(early) == CanonicalState(late))
    late.subscribe("a")
    #expect(CanonicalState(early) != CanonicalState(late))
  }
}

/// Breadth-first search over the states of a machine.
struct ModelCheck {
  struct Failure {
    let sequence: MachineSequence
    let text: String
  }

  private var visited: Set<CanonicalState> = []
  /// States of the newest depth, with the steps that lead there.
  private var frontier: [(run: SequenceRun, steps: [MachineStep])] = []
  private(set) var eventCount = 0

  var stateCount: Int { visited.count }

  init(_ beginning: [MachineStep]) {
    var run = SequenceRun(MachineSequence(steps: []))
    for step in beginning { run.apply(step) }
    run.driver.forget()
    visited.insert(CanonicalState(run.driver))
    frontier = [(run, beginning)]
  }

  /// Goes one event further from every newest state.
  mutating func goOn(_ steps: [MachineStep]) -> Failure? {
    var next: [(run: SequenceRun, steps: [MachineStep])] = []
    for (run, path) in frontier {
      for step in steps {
        eventCount += 1
        var run = run
        run.apply(step)
        run.driver.forget()
        if let violation = run.driver.rules.violations.first {
          return Failure(sequence: MachineSequence(steps: path + [step]), text: violation)
        }
        guard visited.insert(CanonicalState(run.driver)).inserted else { continue }
        next.append((run, path + [step]))
      }
    }
    frontier = next
    return nil
  }
}
