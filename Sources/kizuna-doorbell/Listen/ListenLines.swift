import HostKit
import KizunaDoorbell
import SupabaseRealtime

/// The lines `listen` prints: one JSON object each.
enum ListenLines {
  static func state(_ status: RealtimeStatus, now: UInt64, wallMilliseconds: Int64) -> String {
    var topics: [String: JSONValue] = [:]
    for topic in status.topics { topics[topic.topic.name] = .string(name(of: topic.state)) }
    var members: [String: JSONValue] = [
      "event": "state", "time": .string(UTCTimestamp.text(milliseconds: wallMilliseconds)),
      "state": .string(name(of: status.state)), "ready": .bool(status.isReady), "topics": .object(topics),
    ]
    if let failure = status.lastFailure ?? status.topics.lazy.compactMap(\.lastFailure).first {
      members["class"] = .string(failure.failureClass.rawValue)
      members["reason"] = .string(failure.description)
    }
    if status.attempt > 0 { members["attempt"] = .int(status.attempt) }
    if let next = status.nextAttemptAt {
      members["retry_in_ms"] = .int(Int((next > now ? next - now : 0).inMilliseconds.rounded()))
    }
    return JSONWriter.text(.object(members))
  }

  static func ring(_ ring: RealtimeRing, wallMilliseconds: Int64) -> String {
    var members: [String: JSONValue] = [
      "event": "ring", "time": .string(UTCTimestamp.text(milliseconds: wallMilliseconds)),
      "topics": .array(ring.topics.map(JSONValue.string)), "cause": .string(ring.cause.name),
    ]
    if case .broadcast(let event) = ring.cause { members["name"] = .string(event) }
    if ring.receivedAt > 0 { members["received_ns"] = .int(Int64(clamping: ring.receivedAt)) }
    return JSONWriter.text(.object(members))
  }

  private static func name(of state: RealtimeStatus.State) -> String {
    switch state {
    case .stopped: "stopped"
    case .disconnected: "disconnected"
    case .connecting: "connecting"
    case .open: "open"
    case .backingOff: "backing_off"
    case .awaitingCredentials: "awaiting_credentials"
    case .suspended: "suspended"
    }
  }

  private static func name(of state: RealtimeStatus.TopicState) -> String {
    switch state {
    case .idle: "idle"
    case .joining: "joining"
    case .joined: "joined"
    case .backingOff: "backing_off"
    case .denied: "denied"
    }
  }
}
