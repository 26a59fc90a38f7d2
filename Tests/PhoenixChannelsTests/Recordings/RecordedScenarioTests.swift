import HostKit
import PhoenixChannels
import Testing

/// Replays recorded conversations through the machine: it does what the recording client did, by its own rules and with
/// its own references, and is told what the server said.
@Suite struct RecordedScenarioTests {
  typealias Check = @Sendable (Replay) -> Void

  private static let todos = "kizunasync:todos"

  /// What each conversation must lead to. Both versions of a scenario lead to the same.
  static let outcomes: [String: Check] = [
    "handshake_ok": { #expect($0.driver.status.counters.opened == 1) },
    "handshake_rejected/vsn-3.0.0": { expectRefusal($0, .transient, 403) },
    "handshake_rejected/no-apikey": { expectRefusal($0, .config, 401) },
    "handshake_rejected/malformed-apikey": { expectRefusal($0, .auth, 401) },
    "handshake_rejected/wrong-signature": { expectRefusal($0, .auth, 401) },
    "handshake_rejected/expired-apikey": { expectRefusal($0, .auth, 401) },
    "handshake_rejected/no-role-claim": { expectRefusal($0, .auth, 401) },
    "handshake_rejected/no-exp-claim": { expectRefusal($0, .auth, 401) },
    "handshake_rejected/unknown-tenant": { expectRefusal($0, .config, 404) },
    "join_public_ok": { #expect($0.atTheEnd("public-room") == .joined) },
    "join_public_ok_presence_enabled": { #expect($0.atTheEnd("public-room") == .joined) },
    "join_private_ok": { replay in
      #expect(replay.atTheEnd(todos) == .joined)
      #expect(replay.driver.rings.map(\.cause) == [.joined])
    },
    "join_private_ok_replication_ready": { replay in
      #expect(replay.atTheEnd(todos) == .joined)
      #expect(replay.driver.rings.map(\.cause) == [.joined, .replicationReady])
    },
    "join_rejected_private_topic_not_allowed": { expectDenied($0, "forbidden:x", "Unauthorized") },
    "join_rejected_private_anon": { expectDenied($0, todos, "Unauthorized") },
    "join_rejected_jwt_unknown_role": { expectDenied($0, todos, "Unauthorized") },
    "join_rejected_private_only_tenant": { expectDenied($0, "public-room", "PrivateOnly") },
    "replay_rejected_public": { expectDenied($0, "public-room", "UnableToReplayMessages") },
    "join_rejected_jwt_malformed": { expectAsked($0, todos) },
    "join_rejected_jwt_wrong_signature": { expectAsked($0, todos) },
    "join_rejected_jwt_expired": { expectAsked($0, todos) },
    "join_rejected_jwt_expired_public": { expectAsked($0, "public-room") },
    "heartbeat": { #expect($0.driver.status.counters.heartbeatsMissed == 0) },
    "leave": { replay in
      #expect(replay.topicsAtTheEnd.isEmpty)
      #expect(replay.driver.sent("phx_leave").count == 1)
    },
    "two_channels_one_socket": { replay in
      #expect(replay.topicsAtTheEnd.map(\.topic.name) == ["kizunasync:b"])
      #expect(replay.atTheEnd("kizunasync:b") == .joined)
    },
    "failing_join_blocks_socket": { replay in
      #expect(replay.atTheEnd(todos) == .joined)
      expectDenied(replay, "forbidden:x", "Unauthorized")
      #expect(replay.driver.status.counters.heartbeatsMissed == 0)
    },
    "access_token_refresh": { replay in
      #expect(replay.atTheEnd(todos) == .joined)
      #expect(replay.driver.sent("access_token").count == 1)
      #expect(replay.driver.status.counters.broadcasts >= 1)
    },
    "access_token_expired": { expectAsked($0, todos) },
    "access_token_malformed": { expectAsked($0, todos) },
    "access_token_wrong_signature": { expectAsked($0, todos) },
    "token_refreshed_before_expiry": { #expect($0.atTheEnd(todos) == .joined) },
    "token_expires_during_session": { replay in
      #expect(replay.driver.asks == [false, true])
      #expect(replay.driver.joins().map { $0.json?["access_token"] } == ["{{jwt:short}}", "{{jwt:user}}"])
      #expect(replay.atTheEnd(todos) == .joined)
      #expect(replay.driver.rings.map(\.cause) == [.joined, .joined])
    },
    "too_many_messages": { replay in
      // Closed for its rate, not for good.
      #expect(
        replay.driver.notes.contains {
          if case .refused(_, let report) = $0 { report.failureClass == .limit } else { false }
        })
      #expect(replay.atTheEnd("flood") == .joined)
    },
    "idle_timeout": { replay in
      #expect(replay.driver.status.lastFailure?.closeCode == 1000)
      guard case .backingOff = replay.driver.status.state else {
        Issue.record("\(replay.driver.status.state)")
        return
      }
    },
  ]

  private static func expectRefusal(_ replay: Replay, _ failureClass: FailureClass, _ status: Int) {
    #expect(replay.driver.status.lastFailure?.failureClass == failureClass)
    #expect(replay.driver.status.lastFailure?.status == status)
  }

  private static func expectDenied(_ replay: Replay, _ topic: String, _ code: String) {
    guard case .denied(let reason) = replay.atTheEnd(topic) else {
      Issue.record("\(topic) is \(String(describing: replay.atTheEnd(topic)))")
      return
    }
    #expect(reason.hasPrefix(code))
  }

  private static func expectAsked(_ replay: Replay, _ topic: String) {
    #expect(replay.driver.asks == [false, true])
    #expect(replay.atTheEnd(topic) == .idle)
  }

  @Test func conversationsLeadToTheStateTheyImply() throws {
    let recordings = try Recording.all() ?? Recording.selection()
    var replayed = 0
    for recording in recordings {
      let name = String(recording.scenario.split(separator: "/")[0])
      guard let check = Self.outcomes[recording.scenario] ?? Self.outcomes[name] else { continue }
      let replay = Replay.run(recording)
      check(replay)
      #expect(replay.driver.rules.violations == [], "\(recording.scenario)")
      #expect(replay.unsent == [], "\(recording.scenario)")
      replayed += 1
    }
    print("\(replayed) recorded conversations replayed")
    #expect(replayed >= 30)
  }
}

/// One recording, played through a machine.
struct Replay {
  private(set) var driver: MachineDriver
  /// Topics when the recording client began to close.
  private(set) var topicsAtTheEnd: [ConnectionStatus.Topic] = []
  /// Recorded joins and heartbeats that the machine had no reason to send.
  private(set) var unsent: [String] = []
  private let recording: Recording
  /// Recorded references and the machine's own for the same frames.
  private var refs: [String: String] = [:]
  private var sawEnd = false

  static func run(_ recording: Recording) -> Replay {
    var replay = Replay(recording)
    for line in recording.lines where line.connection == "A" { replay.play(line) }
    if !replay.sawEnd { replay.topicsAtTheEnd = replay.driver.status.topics }
    return replay
  }

  private init(_ recording: Recording) {
    self.recording = recording
    driver = MachineDriver()
  }

  func atTheEnd(_ topic: String) -> ConnectionStatus.TopicState? {
    topicsAtTheEnd.first { $0.topic.name == topic }?.state
  }

  private mutating func play(_ line: Recording.Line) {
    switch (line.direction, line.json["kind"]?.stringValue, line.json["opcode"]?.stringValue) {
    case ("client->server", "http-upgrade", _): begin()
    case ("server->client", "http-response", _): answer(line)
    case ("client->server", _, "close"): end()
    case ("server->client", _, "close"):
      if !sawEnd {
        let code = line.json["close_code"]?.intValue.flatMap { UInt16(exactly: $0) }
        driver.feed(.closed(code: code, reason: line.json["close_reason"]?.stringValue ?? ""))
      }
      end()
    default:
      guard let message = line.message, !sawEnd else { return }
      if line.isFromServer { fromServer(message) } else { fromClient(message) }
    }
  }

  private mutating func begin() {
    // A topic of its own opens the connection; it is dropped as soon as the recording joins one.
    driver.subscribe("placeholder")
    driver.feed(.start)
  }

  private mutating func answer(_ line: Recording.Line) {
    let status = line.json["status"]?.intValue ?? 0
    if status == 101 {
      driver.feed(.opened)
    } else {
      driver.feed(.credentials(.token("{{jwt:user}}")))
      driver.feed(.refused(status: status, retryAfterSeconds: nil, body: line.json["body"]?.stringValue))
    }
  }

  private mutating func end() {
    guard !sawEnd else { return }
    sawEnd = true
    topicsAtTheEnd = driver.status.topics
  }

  private mutating func fromClient(_ message: PhoenixMessage) {
    guard let frame = try? PhoenixSerializer(recording.version(of: "A"), side: .server).decode(message) else { return }
    let name = String(frame.topic.dropFirst("realtime:".count))
    switch frame.event {
    case "phx_join": join(frame, name)
    case "phx_leave": if driver.state(name) != nil { driver.unsubscribe(name) }
    case "access_token":
      guard let token = frame.json?["access_token"]?.stringValue, !token.hasPrefix("sb_") else { return }
      driver.feed(.credentials(.token(token)))
    case "heartbeat":
      guard let ref = frame.ref else { return }
      let before = driver.sent("heartbeat").count
      driver.feed(.hint(.manual))
      if driver.sent("heartbeat").count == before { unsent.append("heartbeat \(ref)") }
      refs[ref] = driver.sent("heartbeat").last?.ref
    default: break
    }
  }

  private mutating func join(_ frame: PhoenixFrame, _ name: String) {
    let before = driver.joins(name).count
    if driver.state(name) == nil { driver.subscribe(name) }
    driver.unsubscribe("placeholder")
    let token = frame.json?["access_token"]?.stringValue ?? "{{jwt:anon}}"
    driver.feed(.credentials(.token(token)))
    // A topic that was closed comes back after its delay.
    if driver.joins(name).count == before { driver.advance(31) }
    if driver.joins(name).isEmpty { unsent.append("join \(name)") }
    if let ref = frame.ref { refs[ref] = driver.joinRef(name) }
  }

  private mutating func fromServer(_ message: PhoenixMessage) {
    guard var frame = try? PhoenixSerializer(recording.version(of: "A")).decode(message) else { return }
    frame.joinRef = frame.joinRef.map { refs[$0] ?? "unknown \($0)" }
    frame.ref = frame.ref.map { refs[$0] ?? "unknown \($0)" }
    driver.receive(frame)
  }
}
