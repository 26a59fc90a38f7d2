import HostKit
import Testing

@testable import PhoenixChannels

/// D32 and its siblings: whatever a peer sends and however often, the machine holds no more than before.
@Suite struct FlatStateTests {
  /// Members of all collections in a value, at any depth. A field that is new is counted too.
  static func entries(_ value: Any) -> Int {
    let mirror = Mirror(reflecting: value)
    let children = mirror.children.reduce(0) { $0 + entries($1.value) }
    switch mirror.displayStyle {
    case .collection, .set, .dictionary: return mirror.children.count + children
    default: return children
    }
  }

  @Test func theCountSeesCollectionsAtAnyDepth() {
    var driver = MachineDriver.joined()
    let before = Self.entries(driver.machine)
    driver.subscribe("b")
    #expect(Self.entries(driver.machine) > before)
  }

  /// One round of everything that may come often, at the end of which all is as at its beginning.
  enum Flood: String, CaseIterable, Sendable {
    case unknownTopics, unknownReferences, undecodable, oversized, broadcasts, distinctTopics, leavesUnanswered
    case refusedJoins, unansweredJoins, crashes, tokens, hints, connections, refusedUpgrades, stops, systemMessages
    case heartbeats
  }

  private func play(_ flood: Flood, _ round: Int, _ driver: inout MachineDriver) {
    let name = "topic-\(round)"
    switch flood {
    case .unknownTopics:
      for event in ["broadcast", "phx_reply", "phx_close", "phx_error", "system", "presence_state"] {
        driver.receive(event, name, joinRef: "x\(round)", ref: "y\(round)", ["status": "ok"])
      }
    case .unknownReferences:
      for event in ["phx_reply", "phx_close", "phx_error"] {
        driver.receive(event, "a", joinRef: "x\(round)", ref: "y\(round)", ["status": "error"])
      }
    case .undecodable: driver.feed(TransportEvent.frame(.failure(.tooShort), receivedAt: 1))
    case .oversized: driver.feed(TransportEvent.tooLarge(bytes: 2_000_000 + round))
    case .broadcasts: driver.broadcast("a", "event-\(round)")
    case .distinctTopics:
      driver.subscribe(name)
      driver.accept(name)
      driver.unsubscribe(name)
      if let ref = driver.leaveRef(name) { driver.reply(name, ref: ref) }
      if let ref = driver.joinRef(name) { driver.receive("phx_close", name, joinRef: ref, ref: ref) }
    case .leavesUnanswered:
      driver.subscribe(name)
      driver.unsubscribe(name)
    case .refusedJoins:
      driver.subscribe(name)
      driver.refuse(name, ["Unauthorized: no", "MusterJoinError: no", "odd \(round)", "InvalidJWTToken: x"][round % 4])
      driver.unsubscribe(name)
      driver.advance(1)
    case .unansweredJoins:
      driver.subscribe(name)
      driver.advanceAnswering(26)
      driver.unsubscribe(name)
    case .crashes:
      if let ref = driver.joinRef("a") { driver.receive("phx_error", "a", joinRef: ref, ref: ref) }
      driver.advanceAnswering(31)
      driver.acceptJoins()
    case .tokens:
      driver.feed(.credentials(.token("token-\(round)")))
      driver.feed(.credentials(.ending))
      driver.feed(.credentials(.unavailable))
      driver.advance(1)
    case .hints: for hint in ConnectionHint.allCases { driver.feed(.hint(hint)) }
    case .connections:
      driver.feed(.closed(code: [nil, 1000, 1011, 1012, 4001][round % 5], reason: "because \(round)"))
      reconnect(&driver)
    case .refusedUpgrades:
      driver.feed(.closed(code: 1000, reason: ""))
      driver.advanceToNextTimer()
      driver.feed(.refused(status: [500, 503, 429, 418][round % 4], retryAfterSeconds: 1, body: "no \(round)"))
      reconnect(&driver)
    case .stops:
      driver.feed(.stop)
      driver.feed(.closed(code: 1000, reason: ""))
      driver.feed(.start)
      reconnect(&driver)
    case .systemMessages:
      for status in ["ok", "error"] {
        driver.receive(
          "system", "a", joinRef: driver.joinRef("a"),
          ["status": .string(status), "extension": "postgres_changes", "message": .string("message \(round)")])
      }
    case .heartbeats:
      driver.advance(20)
      driver.answerHeartbeat()
    }
    driver.answerHeartbeat()
  }

  private func reconnect(_ driver: inout MachineDriver) {
    for _ in 0..<100 where !driver.lastStatus.isReady {
      if driver.lastStatus.state == .connecting { driver.feed(.opened) }
      driver.acceptJoins()
      if !driver.lastStatus.isReady { driver.advanceToNextTimer() }
      driver.answerHeartbeat()
    }
  }

  /// The first rounds fill what is bounded: the attempts of a window, the leaves that are remembered.
  @Test(arguments: Flood.allCases)
  func tenTimesAsMuchHoldsNoMore(flood: Flood) {
    var driver = MachineDriver.joined(topics: ["a"], credentials: "token") { $0.join.maximumRemembered = 16 }
    var early = 0
    var late = 0
    for round in 0..<500 {
      play(flood, round, &driver)
      driver.forget()
      guard round >= 50 else { continue }
      let entries = Self.entries(driver.machine) + driver.timers.count
      if round < 100 { early = max(early, entries) } else { late = max(late, entries) }
    }
    #expect(late <= early, "\(flood)")
    #expect(driver.rules.violations == [])
  }
}
