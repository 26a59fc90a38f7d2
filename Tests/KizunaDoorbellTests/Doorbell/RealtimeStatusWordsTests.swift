import Testing

@testable import KizunaDoorbell
@testable import PhoenixChannels

@Suite struct RealtimeStatusWordsTests {
  private static func status(_ topics: [(String, FailureReport?)], failure: FailureReport? = nil) throws
    -> ConnectionStatus
  {
    let topics = try topics.map { name, report in
      ConnectionStatus.Topic(
        topic: try ChannelTopic("kizunasync:\(name)"), state: report == nil ? .joined : .denied(reason: "x"),
        subscribers: 1, lastFailure: report, failuresInARow: 0)
    }
    return ConnectionStatus(
      state: .open, isReady: false, attempt: 0, nextAttemptAt: nil, lastFailure: failure, topics: topics,
      lastRoundTrip: nil, counters: ConnectionCounters())
  }

  /// Who has several tables wants to know which of them.
  @Test func theReasonNamesTheTopicsThatAreConcerned() throws {
    let denied = FailureReport(.denied, "Unauthorized")
    #expect(try Self.status([("a", nil)]).standingReason == nil)
    #expect(try Self.status([("a", denied)]).standingReason == "\(denied)")
    #expect(try Self.status([("a", denied), ("b", denied)]).standingReason == "\(denied)")
    #expect(try Self.status([("a", nil), ("b", denied)]).standingReason == "kizunasync:b: \(denied)")
    let many = ["b", "c", "d", "e", "f"].map { ($0, Optional(denied)) }
    #expect(
      try Self.status([("a", nil)] + many).standingReason
        == "kizunasync:b, kizunasync:c, kizunasync:d and 2 more: \(denied)")
    let lost = FailureReport(.transient, "the connection was cut")
    #expect(try Self.status([("a", nil), ("b", denied)], failure: lost).standingReason == "\(lost)")
  }
}
