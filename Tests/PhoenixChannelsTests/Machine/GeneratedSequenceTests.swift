import Foundation
import HostKit
import PhoenixChannels
import Testing

/// Random histories: whatever owner, network and server do, the machine's rules hold after each event, and a healthy
/// server at the end is always reached again.
///
/// `KIZUNA_SEQUENCES` sets how many (default 2000), `KIZUNA_SEED` runs one seed alone.
@Suite struct GeneratedSequenceTests {
  @Test func rulesHoldInRandomHistories() {
    let environment = ProcessInfo.processInfo.environment
    let only = environment["KIZUNA_SEED"].flatMap { UInt64($0) }
    let count = environment["KIZUNA_SEQUENCES"].flatMap { UInt64($0) } ?? 2_000
    for seed in only.map({ $0...$0 }) ?? 1...max(1, count) {
      if let failure = History(seed: seed).run() {
        Issue.record("KIZUNA_SEED=\(seed): \(failure)")
        return
      }
    }
  }
}

private struct History {
  private let seed: UInt64
  private var random: SeededGenerator
  private var driver: MachineDriver
  private var tokens = 0
  /// Wanted topics with their subscribers, as a user would count them.
  private var wanted: [String: Int] = [:]
  private var started = false
  private let usesCredentials: Bool

  init(seed: UInt64) {
    self.seed = seed
    random = SeededGenerator(seed: seed)
    var policy = ConnectionPolicy()
    usesCredentials = random.next() % 2 == 0
    policy.usesCredentials = usesCredentials
    driver = MachineDriver(policy)
    // Its own generator: the machine's draws must not depend on how often a test looks.
    let chance = Locked(SeededGenerator(seed: seed ^ 0xABCD))
    driver.jitter = { chance.withLock { $0.unit() } }
  }

  private static let topics = ["a", "b", "c", "d"]
  private static let reasons = [
    "Unauthorized: You do not have permissions to read from this Channel topic: x",
    "InvalidJWTToken: Token has expired 3 seconds ago", "ChannelRateLimitReached: Too many channels",
    "ClientJoinRateLimitReached: Too many joins per second", "UnableToConnectToProject: no", "RealtimeRestarting: wait",
    "PrivateOnly: This project only allows private channels", "TenantNotFound: no", "", "Unknown Error on Channel",
  ]

  consuming func run() -> String? {
    for _ in 0..<(20 + random.next() % 120) {
      step()
      if let violation = driver.rules.violations.first { return violation + "\n" + driver.trace() }
    }
    return heal()
  }

  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int(random.next() % UInt64(elements.count))]
  }

  private mutating func step() {
    switch random.next() % 27 {
    case 0:
      started = true
      driver.feed(.start)
    case 1:
      if random.next() % 4 == 0 {
        started = false
        driver.feed(.stop)
      }
    case 2, 3:
      let topic = pick(Self.topics)
      wanted[topic, default: 0] += 1
      driver.subscribe(topic)
    case 4:
      let topic = pick(Self.topics)
      if let count = wanted[topic] { wanted[topic] = count == 1 ? nil : count - 1 }
      driver.unsubscribe(topic)
    case 5: driver.feed(.hint(pick(ConnectionHint.allCases)))
    case 6: credentials()
    case 7, 8: driver.feed(TransportEvent.opened)
    case 9: driver.feed(TransportEvent.failed("gone", isConfiguration: random.next() % 8 == 0))
    case 10:
      driver.feed(TransportEvent.closed(code: pick([nil, 1000, 1001, 1006, 1011, 1012, 4001]), reason: ""))
    case 11: refuseUpgrade()
    case 12...14: driver.accept(pick(Self.topics))
    case 15: driver.refuse(pick(Self.topics), pick(Self.reasons))
    case 16: driver.answerHeartbeat()
    case 17: driver.broadcast(pick(Self.topics))
    case 18: endChannel()
    case 19: noise()
    case 20: driver.sleep(Double(random.next() % 100))
    case 21: driver.advance(Double(random.next() % 400))
    case 22: if !driver.cancelled.isEmpty { driver.feed(.timer(pick(driver.cancelled))) }
    default: driver.advance(random.unit() * 8)
    }
  }

  private mutating func credentials() {
    switch random.next() % 8 {
    case 0: driver.feed(.credentials(.withdrawn))
    case 1: driver.feed(.credentials(.unavailable))
    case 2: driver.feed(.credentials(.token("secret-\(max(1, tokens))")))
    default:
      tokens += 1
      driver.feed(.credentials(.token("secret-\(tokens)")))
    }
  }

  private mutating func refuseUpgrade() {
    let status = pick([400, 401, 403, 404, 429, 500, 502, 302])
    let retryAfter: Int? = random.next() % 4 == 0 ? Int(random.next() % 100_000) : nil
    driver.feed(
      TransportEvent.refused(
        status: status, retryAfterSeconds: retryAfter, body: pick([nil, #"{"error":"Token has expired"}"#, "<html>"])))
  }

  private mutating func endChannel() {
    let topic = pick(Self.topics)
    if random.next() % 2 == 0 {
      driver.receive(
        "system", topic, joinRef: driver.joinRef(topic),
        [
          "status": "error", "extension": pick(["system", "postgres_changes"]),
          "message": pick(["Token has expired 0 seconds ago", "Too many messages per second", "odd"]),
        ])
    }
    let stale: String? = pick([driver.joinRef(topic), driver.joinRef(topic), "1", nil])
    driver.receive(pick(["phx_close", "phx_error"]), topic, joinRef: stale, ref: stale)
  }

  private mutating func noise() {
    let topic = pick(Self.topics)
    switch random.next() % 5 {
    case 0: driver.feed(TransportEvent.frame(.failure(.tooShort), receivedAt: 0))
    case 1: driver.feed(TransportEvent.tooLarge(bytes: 9_999_999))
    case 2: driver.reply(topic, ref: String(random.next() % 60), pick(["ok", "error", "?"]), pick([nil, [], 5, "x"]))
    case 3: driver.receive(pick(["presence_state", "system", "later"]), topic, nil)
    default: driver.feed(TransportEvent.pong)
    }
  }

  /// From now on everything works. Whatever happened, all wanted topics must come into service.
  private mutating func heal() -> String? {
    if !started { driver.feed(.start) }
    if wanted.isEmpty {
      wanted["a"] = 1
      driver.subscribe("a")
    }
    tokens += 1
    driver.feed(.hint(.pathSatisfied))
    for _ in 0..<4_000 {
      driver.feed(TransportEvent.opened)
      if !driver.status.isReady {
        // The session owner goes on producing tokens.
        if usesCredentials || driver.status.state == .awaitingCredentials {
          driver.feed(.credentials(.token("healthy-\(tokens)")))
        }
      }
      driver.acceptJoins()
      driver.answerHeartbeat()
      if driver.status.isReady { break }
      driver.advance(1)
      if let violation = driver.rules.violations.first { return violation + "\n" + driver.trace() }
    }
    guard driver.status.isReady else { return "never ready again: \(driver.status)\n\(driver.trace())" }
    let served = Set(driver.status.topics.map(\.topic.name))
    if served != Set(wanted.keys) { return "serves \(served), wanted are \(wanted)" }
    for topic in driver.status.topics where topic.subscribers != wanted[topic.topic.name] {
      return "\(topic) miscounted"
    }
    // And a stop ends it all.
    driver.feed(.stop)
    driver.advance(2)
    if driver.status.state != .stopped || !driver.timers.isEmpty { return "not stopped: \(driver.timers)" }
    driver.forget()
    driver.feed(TransportEvent.opened)
    driver.feed(TransportEvent.closed(code: 1000, reason: ""))
    driver.advance(3_600)
    let late = driver.effects.filter { $0 != .stopped }
    return late.isEmpty ? driver.rules.violations.first : "after the stop: \(late)"
  }
}
