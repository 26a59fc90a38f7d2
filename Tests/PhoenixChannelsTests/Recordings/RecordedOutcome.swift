import HostKit
import PhoenixChannels
import Testing

/// What a recorded conversation must lead to, as seen from one of its sockets.
struct RecordedOutcome: Sendable {
  typealias Check = @Sendable (Replay) -> Void

  var connection = "A"
  /// Recorded frames that the machine has a reason not to send.
  var unsent: [String] = []
  let check: Check

  /// Both versions of a scenario lead to the same.
  static func of(_ recording: Recording) -> [RecordedOutcome] {
    let name = String(recording.scenario.split(separator: "/")[0])
    if let check = states[recording.scenario] ?? states[name] { return [RecordedOutcome(check: check)] }
    return others[recording.scenario] ?? others[name] ?? []
  }

  private static let todos = "kizunasync:todos"

  /// By scenario, with its version or without.
  private static let states: [String: Check] = [
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
    "join_minimal_payload": { replay in
      #expect(replay.atTheEnd("public-room") == .joined)
      expectWarning(replay)
    },
    // A topic without a name cannot be wanted; what the server says of one denies it.
    "join_rejected_empty_topic": { replay in
      #expect(throws: ChannelTopicError.empty) { try ChannelTopic("") }
      expectDenied(replay, Replay.unnamed, "TopicNameRequired")
    },
    "join_rejected_unknown_topic_prefix": { expectRetried($0, "other:room", "unmatched topic") },
    "join_invalid_payload": { expectRetried($0, "public-room", "UnknownErrorOnChannel") },
    "join_without_join_ref": { replay in
      #expect(replay.topicsAtTheEnd.isEmpty)
      expectRings(replay, [.joined, .broadcast(event: "changed")])
    },
    // The second join closes the first, and the word of that comes after its ok.
    "duplicate_join": { replay in
      #expect(replay.atTheEnd(todos) == .joined)
      expectRings(replay, [.joined, .joined, .broadcast(event: "changed")])
    },
    "leave_stale_join_ref": { #expect($0.atTheEnd(todos) == .joined) },
    "push_to_unjoined_topic": { replay in
      #expect(replay.driver.status.counters.framesUnmatched == 2)
      #expect(replay.driver.status.state == .open)
      #expect(replay.driver.joins().isEmpty)
    },
    "heartbeat_numeric_ref": { expectAnsweredHeartbeats($0, 1) },
    "ping_and_fragments": { expectAnsweredHeartbeats($0, 1) },
    "oversized_frame_4900000": { expectAnsweredHeartbeats($0, 1) },
    "oversized_frame_5000001": { expectLost($0, code: 1009) },
    "oversized_frame_6000000": { expectLost($0, code: 1009) },
    "protocol_unmasked_frame": { expectLost($0, code: 1002) },
    "protocol_unknown_opcode": { expectLost($0, code: 1002) },
    "protocol_close_no_code": { #expect($0.atTheEnd(todos) == .joined) },
    // The array with a topic that is a number is answered in kind, and that is no frame.
    "malformed_frames/1.0.0": { expectUnimpressed($0, undecodable: 0) },
    "malformed_frames/2.0.0": { expectUnimpressed($0, undecodable: 1) },
    "access_token_bad_payload": { replay in
      #expect(replay.atTheEnd(todos) == .joined)
      #expect(replay.driver.sent("access_token").isEmpty)
    },
    "broadcast_from_database/1.0.0": { expectBroadcasts($0, databaseEvents) },
    "broadcast_from_database/2.0.0": { expectBroadcasts($0, databaseEvents + ["bin"]) },
    "broadcast_from_database_public": { replay in
      #expect(replay.atTheEnd("public-room") == .joined)
      expectRings(replay, [.joined, .broadcast(event: "changed")])
    },
    "broadcast_from_database_large": { expectBroadcasts($0, ["changed"]) },
    "http_broadcast": { expectBroadcasts($0, ["changed", "changed", "changed"]) },
    // Nobody tells a joined channel; only what is missing does.
    "admin_shutdown_tenant": { replay in
      #expect(replay.atTheEnd(todos) == .joined)
      expectAnsweredHeartbeats(replay, 1)
    },
    // What was sent while the database was away is lost, and again nobody tells.
    "database_connections_killed/1.0.0": { expectChanges($0, 7) },
    "database_connections_killed/2.0.0": { expectChanges($0, 8) },
    "database_restart/1.0.0": { replay in
      for topic in [todos, "kizunasync:third"] { #expect(replay.atTheEnd(topic) == .joined) }
      expectRetried(replay, "kizunasync:second", "IncreaseConnectionPool")
      expectAnsweredHeartbeats(replay, 2)
      #expect(replay.driver.status.counters.broadcasts == 17)
    },
    "database_restart/2.0.0": { replay in
      for topic in [todos, "kizunasync:second", "kizunasync:third"] { #expect(replay.atTheEnd(topic) == .joined) }
      expectAnsweredHeartbeats(replay, 2)
      #expect(replay.driver.status.counters.broadcasts == 15)
    },
  ]

  /// Those of several sockets, and those in which the machine does not do what the recording client did.
  private static let others: [String: [RecordedOutcome]] = [
    "handshake_rejected/no-upgrade-headers": [
      RecordedOutcome(connection: "http") { expectRefusal($0, .config, 400) }
    ],
    // The fourth room is refused, so a fifth is not asked for before one was left. Then it is its turn, which this server
    // had no occasion to answer, and only then the fourth's again.
    "too_many_channels": [
      RecordedOutcome(unsent: ["join room5"]) { replay in
        #expect(replay.atTheEnd("room1") == nil)
        for room in ["room2", "room3", "room4"] { #expect(replay.atTheEnd(room) == .joined) }
        let joins = replay.driver.joins().map { $0.topic.dropFirst(ChannelTopic.prefix.count) }
        #expect(joins.starts(with: ["room1", "room2", "room3", "room4", "room5", "room4"]), "\(joins)")
        #expect(replay.driver.status.counters.topicFailures[.limit] == 1)
      }
    ],
    "too_many_connections": [
      RecordedOutcome { #expect($0.atTheEnd("room") == .joined) },
      RecordedOutcome(connection: "F") { expectRefusal($0, .limit, 429) },
    ],
    "client_broadcast/1.0.0": both(broadcasts: 1),
    // And one in binary.
    "client_broadcast/2.0.0": both(broadcasts: 2),
    "server_shutdown_SIGTERM": [
      RecordedOutcome(connection: "A") { expectLost($0, code: 1012) },
      RecordedOutcome(connection: "B") { expectLost($0, code: 1012) },
      RecordedOutcome(connection: "C") { expectLost($0, code: nil) },
      // Its join went to a server that was leaving.
      RecordedOutcome(connection: "D") { replay in
        #expect(replay.atTheEnd(todos) == .joining)
        expectLost(replay, code: nil)
      },
    ],
  ]

  private static let databaseEvents = [
    "changed", "changed", "changed", "", "見出し event", "changed", "changed", "changed",
  ]

  /// Who sends to itself, and who listens.
  private static func both(broadcasts: Int) -> [RecordedOutcome] {
    ["A", "B"].map { connection in
      RecordedOutcome(connection: connection) { replay in
        expectBroadcasts(replay, Array(["hello", "hello"].prefix(broadcasts)))
      }
    }
  }

  // MARK: Checks

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

  private static func expectRetried(_ replay: Replay, _ topic: String, _ reason: String) {
    guard case .backingOff = replay.atTheEnd(topic) else {
      Issue.record("\(topic) is \(String(describing: replay.atTheEnd(topic)))")
      return
    }
    let failure = replay.topicsAtTheEnd.first { $0.topic.name == topic }?.lastFailure
    #expect(failure?.failureClass == .transient)
    #expect(failure?.text.hasPrefix(reason) == true)
  }

  private static func expectWarning(_ replay: Replay) {
    #expect(replay.driver.notes.contains { if case .warning = $0 { true } else { false } })
  }

  private static func expectRings(_ replay: Replay, _ causes: [ConnectionRing.Cause]) {
    #expect(replay.driver.rings.map(\.cause) == causes)
  }

  private static func expectBroadcasts(_ replay: Replay, _ events: [String]) {
    #expect(replay.atTheEnd(todos) == .joined)
    expectRings(replay, [.joined] + events.map { .broadcast(event: $0) })
  }

  private static func expectUnimpressed(_ replay: Replay, undecodable: Int) {
    #expect(replay.atTheEnd(todos) == .joined)
    #expect(replay.driver.status.counters.framesUndecodable == undecodable)
    #expect(replay.driver.status.counters.heartbeatsMissed == 0)
  }

  private static func expectChanges(_ replay: Replay, _ count: Int) {
    #expect(replay.atTheEnd(todos) == .joined)
    expectRings(replay, [.joined, .replicationReady] + Array(repeating: .broadcast(event: "changed"), count: count))
    expectAnsweredHeartbeats(replay, 1)
  }

  private static func expectAnsweredHeartbeats(_ replay: Replay, _ count: Int) {
    let status = replay.driver.status
    #expect(status.counters.heartbeatsSent == count)
    #expect(status.counters.heartbeatsMissed == 0)
    #expect(status.counters.framesUnmatched == 0)
    #expect(status.lastRoundTrip != nil)
    #expect(status.state == .open)
  }

  /// The server ended the connection, and it is made again.
  private static func expectLost(_ replay: Replay, code: UInt16?) {
    let status = replay.driver.status
    #expect(status.lastFailure?.failureClass == .transient)
    #expect(status.lastFailure?.closeCode == code)
    guard case .backingOff = status.state else {
      Issue.record("\(status.state)")
      return
    }
  }
}
