import HostKit
import Testing

@testable import PhoenixChannels
@testable import SupabaseRealtime
@testable import kizuna_doorbell

/// What `listen` prints, line by line.
@Suite struct ListenLinesTests {
  private static func status(
    _ state: ConnectionStatus.State, _ topic: ConnectionStatus.TopicState? = .idle, topicFailure: FailureReport? = nil,
    failure: FailureReport? = nil, attempt: Int = 0, next: UInt64? = nil
  ) throws -> ConnectionStatus {
    let topics = try topic.map {
      [
        ConnectionStatus.Topic(
          topic: try ChannelTopic("kizunasync:todos"), state: $0, subscribers: 1, lastFailure: topicFailure,
          failuresInARow: 0)
      ]
    }
    return ConnectionStatus(
      state: state, isReady: state == .open && topic == .joined, attempt: attempt, nextAttemptAt: next,
      lastFailure: failure, topics: topics ?? [], lastRoundTrip: nil, counters: ConnectionCounters())
  }

  /// The parsed line without its time, or nil where nothing is printed.
  private static func told(
    _ lines: inout ListenLines, _ status: ConnectionStatus, now: UInt64 = 0
  ) throws -> [String: JSONValue]? {
    guard let line = lines.state(status, now: now, wallMilliseconds: 0) else { return nil }
    var members = try #require(try JSONValue(parsing: line).objectValue)
    #expect(members.removeValue(forKey: "time") == "1970-01-01T00:00:00.000Z")
    #expect(members.removeValue(forKey: "event") == "state")
    return members
  }

  private static let lost = FailureReport(.transient, "The connection was lost.")

  @Test func eachTransitionIsToldOnce() throws {
    var lines = ListenLines()
    func topics(_ state: String) -> JSONValue { ["kizunasync:todos": .string(state)] }
    #expect(
      try Self.told(&lines, Self.status(.connecting))
        == ["state": "connecting", "ready": false, "topics": topics("idle")])
    #expect(try Self.told(&lines, Self.status(.connecting)) == nil)
    #expect(
      try Self.told(&lines, Self.status(.open, .joining))
        == ["state": "open", "ready": false, "topics": topics("joining")])
    #expect(
      try Self.told(&lines, Self.status(.open, .joined)) == [
        "state": "open", "ready": true, "topics": topics("joined"),
      ]
    )
    // Nothing but counters or the failure of long ago has changed.
    #expect(try Self.told(&lines, Self.status(.open, .joined, failure: Self.lost, attempt: 1)) == nil)
    #expect(
      try Self.told(
        &lines, Self.status(.backingOff(until: 2_500_000_000), failure: Self.lost, attempt: 2, next: 2_500_000_000),
        now: 1_000_000_000)
        == [
          "state": "backing_off", "ready": false, "topics": topics("idle"), "class": "transient",
          "reason": "The connection was lost.", "attempt": 2, "retry_in_ms": 1_500,
        ])
    // The same wait, seen a second later.
    #expect(
      try Self.told(
        &lines, Self.status(.backingOff(until: 2_500_000_000), failure: Self.lost, attempt: 2, next: 2_500_000_000),
        now: 2_000_000_000) == nil)
  }

  /// A refused token is the reason, not the close that it led to.
  @Test func aRefusedTokenIsNamedBeforeTheEndOfItsConnection() throws {
    var lines = ListenLines()
    let line = try Self.told(
      &lines,
      Self.status(
        .awaitingCredentials, .idle, topicFailure: FailureReport(.auth, "Token has expired"), failure: Self.lost))
    #expect(line?["class"] == "auth")
    #expect(line?["reason"] == "Token has expired")
    #expect(line?["topics"] == ["kizunasync:todos": "awaiting_credentials"])
  }

  /// On the way out nothing of earlier times is given as the reason.
  @Test func leavingHasNoReason() throws {
    var lines = ListenLines()
    let line = try Self.told(&lines, Self.status(.open, nil, failure: Self.lost, attempt: 3))
    #expect(line == ["state": "open", "ready": false, "topics": [:]])
  }

  @Test func aDeniedTopicSaysWhy() throws {
    var lines = ListenLines()
    let refusal = FailureReport(.denied, "Unauthorized")
    let line = try Self.told(
      &lines, Self.status(.open, .denied(reason: "Unauthorized"), topicFailure: refusal))
    #expect(line?["topics"] == ["kizunasync:todos": "denied"])
    #expect(line?["class"] == "denied")
    #expect(line?["reason"] == "Unauthorized")
  }

  @Test func aRingNamesItsTopicsAndCause() throws {
    let ring = RealtimeRing(topics: ["kizunasync:todos"], cause: .broadcast(event: "changed"), receivedAt: 7)
    let line = try JSONValue(parsing: ListenLines.ring(ring, wallMilliseconds: 0))
    #expect(
      line == [
        "event": "ring", "time": "1970-01-01T00:00:00.000Z", "topics": ["kizunasync:todos"], "cause": "broadcast",
        "name": "changed", "received_ns": 7,
      ])
  }
}
