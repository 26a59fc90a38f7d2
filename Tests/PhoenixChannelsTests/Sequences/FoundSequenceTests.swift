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
}
