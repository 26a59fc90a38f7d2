import Testing

@testable import SupabaseRealtime

@Suite struct AttemptRecordTests {
  private func record(
    _ phase: AttemptRecord.Phase, proxy: String? = nil, _ change: (inout AttemptRecord) -> Void = { _ in }
  ) -> AttemptRecord {
    var record = AttemptRecord(origin: "db.example:443", proxy: proxy)
    record.phase = phase
    change(&record)
    return record
  }

  @Test(
    arguments: [
      (.resolving, .other), (.connecting, .unreachable), (.tunnelling, .other), (.securing, .tls),
      (.upgrading, .connectionLost), (.open, .connectionLost),
    ] as [(AttemptRecord.Phase, RealtimeTransportFailure.Kind)])
  func anUnexplainedEndIsNamedAfterHowFarItCame(
    phase: AttemptRecord.Phase, kind: RealtimeTransportFailure.Kind
  ) {
    guard case .failed(let failure) = record(phase).finalEvent() else {
      Issue.record("no failure")
      return
    }
    #expect(failure.kind == kind)
    #expect(failure.message.contains("db.example:443"))
  }

  @Test func theCertificateExplainsAFailureOfTLS() {
    let event = record(.securing) { $0.certificateProblem = "certificate has expired" }.finalEvent()
    #expect(
      event
        == .failed(
          RealtimeTransportFailure(
            .tls, "The certificate of db.example:443 was not accepted: certificate has expired.")))
  }

  @Test func anAlertExplainsAFailureOfTLS() {
    let event = record(.securing) { $0.handshakeProblem = TLSAlert.reason(40) }.finalEvent()
    #expect(
      event
        == .failed(
          RealtimeTransportFailure(
            .tls, "The TLS handshake with db.example:443 failed: no way of encrypting is known to both sides.")))
    // Any other in OpenSSL's words.
    #expect(TLSAlert.reason(80) == "internal error")
  }

  /// What was decided first wins over what libwebsockets reports as its consequence.
  @Test func factsAreWeighedInOrder() {
    let requested = AttemptRecord.Close(code: 1000, reason: "done")
    let peer = AttemptRecord.Close(code: 1011, reason: "bug")
    let failure = RealtimeTransportFailure(.timeout, "late")
    let refusal = AttemptRecord.Refusal(status: 403, retryAfterSeconds: 9, body: "no")
    #expect(
      record(.upgrading) {
        $0.requestedClose = requested
        $0.failure = failure
        $0.refusal = refusal
      }.finalEvent() == .closed(code: 1000, reason: "done"))
    #expect(
      record(.open) {
        $0.requestedClose = requested
        $0.failure = failure
        $0.peerClose = peer
      }.finalEvent() == .failed(failure))
    #expect(
      record(.upgrading) { $0.refusal = refusal }.finalEvent()
        == .refused(status: 403, retryAfterSeconds: 9, body: "no"))
    #expect(
      record(.open) {
        $0.requestedClose = requested
        $0.peerClose = peer
      }.finalEvent() == .closed(code: 1011, reason: "bug"))
    #expect(record(.open) { $0.requestedClose = requested }.finalEvent() == .closed(code: 1000, reason: "done"))
  }

  @Test(
    arguments: [
      (.resolving, "resolved"), (.connecting, "No connection"), (.tunnelling, "proxy p:1"), (.securing, "TLS"),
      (.upgrading, "upgrade"),
    ] as [(AttemptRecord.Phase, String)])
  func aTimeoutNamesTheStep(phase: AttemptRecord.Phase, word: String) {
    let failure = record(phase, proxy: phase == .tunnelling ? "p:1" : nil).handshakeTimeout(after: 15_000_000_000)
    #expect(failure.kind == .timeout)
    #expect(failure.message.contains(word))
    #expect(failure.message.contains("15 s"))
  }
}
