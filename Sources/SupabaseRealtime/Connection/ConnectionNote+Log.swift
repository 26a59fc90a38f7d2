import HostKit
import PhoenixChannels

extension ConnectionNote {
  /// One note is one line. Times become seconds from now.
  func write(to log: HostLog, now: UInt64, server: String) {
    switch self {
    case .connecting(let attempt):
      log.info("realtime.connecting", ["server": .string(server), "attempt": .int(attempt)])
    case .opened: log.info("realtime.open", ["server": .string(server)])
    case .lost(let report): log.warning("realtime.lost", report.fields)
    case .waiting(let until): log.info("realtime.waiting", ["seconds": Self.seconds(until, now)])
    case .suspended(let until): log.warning("realtime.suspended", ["seconds": Self.seconds(until, now)])
    case .awaitingCredentials: log.warning("realtime.awaiting_credentials")
    case .heartbeatMissed: log.warning("realtime.heartbeat_missed")
    case .joined(let topic): log.info("realtime.joined", ["topic": .string(topic.name)])
    case .refused(let topic, let report): log.warning("realtime.refused", report.fields, topic: topic)
    case .left(let topic): log.info("realtime.left", ["topic": .string(topic.name)])
    case .replaced(let report): log.warning("realtime.replaced", report.fields)
    case .warning(let topic, let report): log.warning("realtime.channel_warning", report.fields, topic: topic)
    case .undecodable(let error): log.debug("realtime.undecodable", ["reason": .string(error.description)])
    case .oversized(let bytes): log.warning("realtime.oversized", ["bytes": .int(bytes)])
    }
  }

  private static func seconds(_ until: UInt64, _ now: UInt64) -> JSONValue {
    let milliseconds = until > now ? (until - now) / 1_000_000 : 0
    return JSONNumber(Double(milliseconds) / 1_000).map(JSONValue.number) ?? 0
  }
}

extension FailureReport {
  fileprivate var fields: [(String, JSONValue)] {
    var fields: [(String, JSONValue)] = [("class", .string(failureClass.rawValue)), ("reason", .string(text))]
    if let status { fields.append(("status", .int(status))) }
    if let closeCode { fields.append(("close", .int(Int(closeCode)))) }
    return fields
  }
}

extension HostLog {
  fileprivate func warning(_ event: String, _ fields: [(String, JSONValue)], topic: ChannelTopic? = nil) {
    log(.warning, event, fields: (topic.map { [("topic", .string($0.name))] } ?? []) + fields)
  }
}
