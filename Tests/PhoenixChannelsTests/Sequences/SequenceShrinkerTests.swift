import PhoenixChannels
import Testing

@Suite struct SequenceShrinkerTests {
  /// A rule that is broken by three steps in this order is found among two hundred.
  @Test func theStepsThatMatterRemain() {
    func fails(_ sequence: MachineSequence) -> Bool {
      guard let start = sequence.steps.firstIndex(of: .start) else { return false }
      guard let hint = sequence.steps[start...].firstIndex(where: { if case .hint = $0 { true } else { false } }) else {
        return false
      }
      return sequence.steps[hint...].contains { if case .advance(let seconds) = $0 { seconds > 2 } else { false } }
    }
    var shrunk = 0
    for seed in 1...60 as ClosedRange<UInt64> {
      let sequence = SequenceGenerator.sequence(seed: seed)
      guard fails(sequence) else { continue }
      shrunk += 1
      let small = SequenceShrinker(fails: fails).shrink(sequence)
      #expect(fails(small))
      #expect(small.steps.count == 3)
      #expect(small.chance == nil && !small.isVersion1 && !small.usesCredentials)
    }
    #expect(shrunk > 20)
  }

  @Test func whatIsPrintedCanBePasted() {
    let sequence = MachineSequence(
      usesCredentials: false, isVersion1: true, chance: 7,
      steps: [
        .subscribe("a"), .start, .closed(nil), .closed(1012),
        .refused(401, retryAfter: 3, body: #"{"error":"x"}"#), .answer("a", .previous, status: "error", reason: nil),
        .late(.answer("b")), .late(.pong), .hint(.pathUnsatisfied), .event("broadcast", "a", .none),
        .system("a", .current, status: "ok", extension: "system", message: "m"),
      ])
    #expect(
      sequence.source(named: "x") == """
          @Test func x() {
            MachineSequence(
              usesCredentials: false, isVersion1: true, chance: 7,
              steps: [
                .subscribe("a"),
                .start,
                .closed(nil),
                .closed(1012),
                .refused(401, retryAfter: 3, body: "{\\"error\\":\\"x\\"}"),
                .answer("a", .previous, status: "error", reason: nil),
                .late(.answer("b")),
                .late(.pong),
                .hint(.pathUnsatisfied),
                .event("broadcast", "a", .none),
                .system("a", .current, status: "ok", extension: "system", message: "m"),
              ]
            ).expectRules()
          }
        """)
  }
}
