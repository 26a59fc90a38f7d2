import HostKit
import PhoenixChannels
import SupabaseRealtime

/// What became of a Realtime connection.
enum RealtimeVerdict {
  static func topic(_ table: String) -> String { "kizunasync:\(table)" }

  /// The connection first, then a finding for each table.
  static func findings(_ status: RealtimeStatus, tables: [String]) -> [Finding] {
    let isOpen = status.counters.opened > 0
    let connection: Finding =
      isOpen
      ? .ok(.realtime, "the WebSocket stands")
      : refused(.realtime, status.lastFailure, otherwise: "the WebSocket did not open in time", for: nil)
    return [connection] + tables.map { join(status, $0, isOpen: isOpen) }
  }

  private static func join(_ status: RealtimeStatus, _ table: String, isOpen: Bool) -> Finding {
    guard isOpen else { return .skipped(.join, "there is no WebSocket", for: table) }
    let topic = status.topics.first { $0.topic.name == Self.topic(table) }
    if topic?.state == .joined { return .ok(.join, "the private channel is joined", for: table) }
    return refused(
      .join, topic?.lastFailure ?? status.lastFailure, otherwise: "the join was not answered in time", for: table)
  }

  private static func refused(
    _ check: Finding.Check, _ failure: FailureReport?, otherwise: String, for table: String?
  ) -> Finding {
    guard let failure else {
      return .failed(
        check, .unreachable, otherwise, remedy: "try again; pulls by the clock go on meanwhile", for: table)
    }
    let (exit, remedy): (ExitCode, String) =
      switch failure.failureClass {
      case .transient where check == .realtime && (failure.isUnknown || failure.status == nil):
        // Before it was a WebSocket, most often something else answers, or nothing does.
        (.unreachable, "check url and realtimeURL, the proxy and the certificate; if they are right, try again")
      case .transient: (.unreachable, "try again; if it stays so, see the server's log")
      case .limit: (.unreachable, "try again later, or raise the project's Realtime limits")
      case .auth where check == .realtime:
        (.authentication, "give the publishable (anon) key of this project as publishableKey")
      case .auth: (.authentication, "sign in again; the token must belong to this project")
      case .denied:
        (
          .authentication,
          "let the role authenticated select from realtime.messages where the topic begins with kizunasync:"
        )
      case .config: (.configuration, "check url and realtimeURL, and the project's Realtime settings")
      }
    return .failed(check, exit, failure.description, remedy: remedy, for: table)
  }

  /// What became of a broadcast that was to ring a topic.
  enum Ring: Sendable, Hashable {
    /// Nanoseconds from the request to the ring.
    case heard(after: UInt64)
    case notHeard
    /// The server's answer to the request.
    case refused(status: Int)
    /// No answer came, and why.
    case failed(String)
    /// Why it was not tried.
    case notTried(String)
  }

  static func ring(_ ring: Ring, table: String) -> Finding {
    let bench =
      "to see a ring of the database itself, kizuna-doorbell bench --config F changes one text cell and puts it back"
    switch ring {
    case .heard(let duration):
      return .ok(.ring, "a broadcast was heard \(duration / 1_000_000) ms after it was sent", for: table)
    case .notHeard:
      return .failed(
        .ring, .failure, "a broadcast on the joined channel was taken by the server and not heard within 10 s",
        remedy: "see the Realtime log of the server; until then rows come with the next pull by the clock", for: table)
    case .refused(401), .refused(403):
      return .skipped(
        .ring, "this user may not ring, as it should be; only the database does", remedy: bench, for: table)
    case .refused(let status):
      return .skipped(.ring, "the server takes no broadcast by HTTP (HTTP \(status))", remedy: bench, for: table)
    case .failed(let message): return .skipped(.ring, message, remedy: bench, for: table)
    case .notTried(let reason): return .skipped(.ring, reason, for: table)
    }
  }
}
