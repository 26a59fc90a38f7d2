import HostKit
import Testing

@testable import KizunaDoorbell
@testable import PhoenixChannels

@Suite struct RealtimeVerdictTests {
  private func status(
    opened: Int, _ topics: [(String, ConnectionStatus.TopicState, FailureReport?)] = [],
    state: ConnectionStatus.State = .open, failure: FailureReport? = nil, attempt: Int = 0
  ) throws -> ConnectionStatus {
    var counters = ConnectionCounters()
    counters.opened = opened
    let topics = try topics.map { name, state, failure in
      ConnectionStatus.Topic(
        topic: try ChannelTopic("kizunasync:\(name)"), state: state, subscribers: 1, lastFailure: failure,
        failuresInARow: failure == nil ? 0 : 1)
    }
    return ConnectionStatus(
      state: state, isReady: opened > 0 && topics.allSatisfy { $0.state == .joined }, attempt: attempt,
      nextAttemptAt: nil, lastFailure: failure, topics: topics, lastRoundTrip: nil, counters: counters)
  }

  @Test func eachTableHasItsFinding() throws {
    let denied = FailureReport(.denied, "You do not have permissions")
    let status = try status(
      opened: 1, [("a", .joined, nil), ("b", .denied(reason: "x"), denied), ("c", .joining, nil)])
    let findings = RealtimeVerdict.findings(status, tables: ["a", "b", "c"])
    #expect(findings.map(\.check) == [.realtime, .join, .join, .join])
    #expect(findings.map(\.subject) == [nil, "a", "b", "c"])
    #expect(findings.map(\.status) == [.ok, .ok, .failed, .failed])
    #expect(findings.map(\.exitCode) == [.ok, .ok, .authentication, .unreachable])
    #expect(findings[2].remedy?.contains("realtime.messages") == true)
  }

  private static let upgrades: [(FailureReport?, ExitCode, String)] = [
    (FailureReport(.auth, "no", status: 401), .authentication, "publishableKey"),
    (FailureReport(.config, "no", status: 404), .configuration, "realtimeURL"),
    (FailureReport(.transient, "refused"), .unreachable, "try again"),
    (FailureReport(.limit, "too many"), .unreachable, "limits"), (nil, .unreachable, "try again"),
  ]

  @Test(arguments: upgrades)
  func withoutAConnectionNoJoinIsJudged(failure: FailureReport?, exit: ExitCode, words: String) throws {
    let findings = RealtimeVerdict.findings(try status(opened: 0, failure: failure), tables: ["a"])
    #expect(findings.map(\.status) == [.failed, .skipped])
    #expect(findings[0].exitCode == exit && findings[0].remedy?.contains(words) == true)
  }

  @Test func whenNothingMoreIsToBeLearnt() throws {
    let refusal = FailureReport(.auth, "no")
    let loss = FailureReport(.transient, "lost")
    #expect(RealtimeProbe.isSettled(try status(opened: 1, [("a", .joined, nil)])))
    #expect(!RealtimeProbe.isSettled(try status(opened: 1, [("a", .joined, nil), ("b", .joining, nil)])))
    #expect(
      RealtimeProbe.isSettled(try status(opened: 1, [("a", .joined, nil), ("b", .backingOff(until: 1), loss)])))
    let denied = FailureReport(.denied, "You do not have permissions")
    #expect(RealtimeProbe.isSettled(try status(opened: 1, [("a", .denied(reason: "x"), denied)])))
    #expect(RealtimeProbe.isSettled(try status(opened: 1, state: .awaitingCredentials)))
    #expect(!RealtimeProbe.isSettled(try status(opened: 0, [("a", .idle, nil)], state: .connecting)))
    for (failure, attempt, isSettled) in [(refusal, 1, true), (loss, 1, false), (loss, 2, true)] {
      let status = try status(
        opened: 0, [("a", .idle, nil)], state: .backingOff(until: 1), failure: failure, attempt: attempt)
      #expect(RealtimeProbe.isSettled(status) == isSettled)
    }
  }

  private static let rings: [(RealtimeVerdict.Ring, Finding.Status)] = [
    (.heard(after: 3_000_000), .ok), (.notHeard, .failed), (.refused(status: 403), .skipped),
    (.refused(status: 404), .skipped), (.failed("away"), .skipped), (.notTried("why"), .skipped),
  ]

  @Test(arguments: rings)
  func whatBecameOfARing(ring: RealtimeVerdict.Ring, status: Finding.Status) {
    #expect(RealtimeVerdict.ring(ring, table: "a").status == status)
  }

  private static let addresses: [(String?, String?)] = [
    (nil, "https://a.example.com/base/realtime/v1/api/broadcast/kizunasync:t/events/changed?private=true"),
    (
      "ws://127.0.0.1:4000/socket/websocket",
      "http://127.0.0.1:4000/api/broadcast/kizunasync:t/events/changed?private=true"
    ),
    (
      "wss://b.example.com/x/realtime/v1/websocket",
      "https://b.example.com/x/realtime/v1/api/broadcast/kizunasync:t/events/changed?private=true"
    ),
    ("wss://b.example.com/elsewhere", nil),
  ]

  @Test(arguments: addresses)
  func whereBroadcastsAreTaken(realtimeURL: String?, expected: String?) throws {
    let configuration = GatewayConfiguration(
      url: try ServerURL("https://a.example.com/base"),
      realtimeURL: try realtimeURL.map { try ServerURL($0, for: .webSocket) },
      publishableKey: ConfigurationSecret(literal: "k"), database: "x", tables: [:],
      session: .accessToken(ConfigurationSecret(literal: "t")))
    #expect(RealtimeProbe.broadcastURL(configuration, table: "t") == expected)
  }
}
