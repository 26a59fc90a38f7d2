import Testing

/// Histories that once broke a rule.
@Suite struct FoundSequenceTests {
  /// A refused topic was never tried again, because nobody could be asked for another token.
  @Test func aRefusedKeyWithoutASession() {
    MachineSequence(
      usesCredentials: false,
      steps: [
        .subscribe("c"), .start, .opened, .nextTimer, .subscribe("a"), .nextTimer,
        .answer("a", .current, status: "ok", reason: nil),
        .answer("c", .current, status: "error", reason: "InvalidJWTToken: Token has expired 3 seconds ago"),
      ]
    ).expectRules()
  }

  /// The attempt that a person asked for counted as one more failure.
  @Test func aManualHintWhileWaitingForCredentials() {
    MachineSequence(
      steps: [.start, .subscribe("b"), .token(1), .refused(401, retryAfter: nil, body: nil), .hint(.manual)]
    ).expectRules()
  }

  /// A join that was given up excuses a silent server for a while only, and no event tells when that is over.
  @Test func aJoinThatWasGivenUpStopsCounting() {
    MachineSequence(
      usesCredentials: false, isVersion1: false, chance: nil,
      steps: [
        .subscribe("a"), .start, .opened, .advance(9.0), .advance(9.0), .advance(9.0), .heartbeatAnswer(.current),
        .advance(9.0), .advance(9.0), .answer("a", .current, status: "ok", reason: nil), .advance(5.0), .staleTimer(0),
      ]
    ).expectRules()
  }
}
