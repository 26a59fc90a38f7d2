import HostKit
import KizunaDoorbell
import PhoenixChannels
import SupabaseRealtime

/// The lines `listen` prints: one JSON object each.
struct ListenLines {
  /// What the last line about the state said, but for its time.
  private var last: [String: JSONValue] = [:]

  /// - Returns: nil when the last line said the same.
  mutating func state(_ status: RealtimeStatus, now: UInt64, wallMilliseconds: Int64) -> String? {
    var topics: [String: JSONValue] = [:]
    for topic in status.topics { topics[topic.topic.name] = .string(Self.name(of: topic)) }
    var members: [String: JSONValue] = [
      "event": "state", "state": .string(status.state.word), "ready": .bool(status.isReady),
      "topics": .object(topics),
    ]
    // Open without a topic is the way out, and no failure of before led there.
    let isLeaving = status.state == .open && status.topics.isEmpty
    if !status.isReady, !isLeaving, let failure = status.standingFailure {
      members["class"] = .string(failure.failureClass.rawValue)
      members["reason"] = .string(failure.description)
    }
    if !status.isReady, !isLeaving, status.attempt > 0 { members["attempt"] = .int(status.attempt) }
    guard members != last else { return nil }
    last = members
    members["time"] = .string(UTCTimestamp.text(milliseconds: wallMilliseconds))
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
    if case .broadcast(let event) = ring.cause { members["name"] = .string(String(event.prefix(200))) }
    if ring.receivedAt > 0 { members["received_ns"] = .int(Int64(clamping: ring.receivedAt)) }
    return JSONWriter.text(.object(members))
  }

  /// Stands for lines that were dropped while nobody read them.
  static func dropped(_ count: Int, wallMilliseconds: Int64) -> String {
    JSONWriter.text([
      "event": "dropped", "time": .string(UTCTimestamp.text(milliseconds: wallMilliseconds)), "count": .int(count),
    ])
  }

  private static func name(of topic: RealtimeStatus.Topic) -> String {
    switch topic.state {
    case .idle: topic.lastFailure?.failureClass == .auth ? "awaiting_credentials" : "idle"
    case .joining: "joining"
    case .joined: "joined"
    case .backingOff: "backing_off"
    case .denied: "denied"
    }
  }
}
