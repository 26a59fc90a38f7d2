import HTTPClient
import HostKit
import PhoenixChannels
import SupabaseRealtime

/// Opens a WebSocket, joins the private channel of each table, and rings the first that is joined where users may.
struct RealtimeProbe: Sendable {
  private let configuration: GatewayConfiguration
  private let parts: GatewayParts
  private let token: String
  private let log: HostLog

  /// Nanoseconds for the upgrade and one join; a refused join takes the server five seconds.
  private static let patience: UInt64 = .seconds(40)
  private static let patiencePerTable: UInt64 = .seconds(6)
  private static let ringPatience: UInt64 = .seconds(10)

  private enum Event: Sendable {
    case status(RealtimeStatus)
    case rang(topics: [String], at: UInt64)
    case deadline
  }

  init(_ configuration: GatewayConfiguration, parts: GatewayParts, token: String, log: HostLog) {
    (self.configuration, self.parts, self.token, self.log) = (configuration, parts, token, log)
  }

  func run() async -> [Finding] {
    let tables = configuration.tables.keys.sorted()
    var realtime = RealtimeConfiguration(url: configuration.url, apiKey: configuration.publishableKey.value)
    if let url = configuration.realtimeURL { realtime.endpoint = .webSocket(url) }
    realtime.policy = configuration.realtimePolicy
    let connection = RealtimeConnection(
      realtime, transport: parts.realtime, credentials: GivenToken(token: token), clock: parts.clock, log: log)
    let (events, continuation) = AsyncStream.makeStream(of: Event.self)
    let clock = parts.clock
    let topics = tables.map(RealtimeVerdict.topic)
    // Table names are checked when the configuration is read, so each is a topic.
    let subscription = try? connection.subscribe(topics: topics) { ring in
      if case .broadcast = ring.cause { continuation.yield(.rang(topics: ring.topics, at: clock.now)) }
    }
    let states = Task { for await status in connection.statusUpdates { continuation.yield(.status(status)) } }
    connection.start()
    var iterator = events.makeAsyncIterator()

    let patience = Self.patience + UInt64(max(0, tables.count - 1)) * Self.patiencePerTable
    let timer = clock.schedule(after: patience) { continuation.yield(.deadline) }
    waiting: while let event = await iterator.next() {
      switch event {
      case .status(let status) where Self.isSettled(status): break waiting
      case .status, .rang: continue
      case .deadline: break waiting
      }
    }
    timer.cancel()
    let status = connection.status
    var findings = RealtimeVerdict.findings(status, tables: tables)

    let joined = tables.first { table in
      status.topics.contains { $0.topic.name == RealtimeVerdict.topic(table) && $0.state == .joined }
    }
    if let joined {
      let sentAt = clock.now
      var ring = await broadcast(joined)
      if ring == .notHeard {
        let timer = clock.schedule(after: Self.ringPatience) { continuation.yield(.deadline) }
        listening: while let event = await iterator.next() {
          switch event {
          case .rang(let topics, let at) where topics.contains(RealtimeVerdict.topic(joined)):
            ring = .heard(after: at - min(at, sentAt))
            break listening
          case .rang, .status: continue
          case .deadline: break listening
          }
        }
        timer.cancel()
      }
      findings.append(RealtimeVerdict.ring(ring, table: joined))
    } else {
      findings.append(.skipped(.ring, "no channel is joined"))
    }
    subscription?.cancel()
    states.cancel()
    await connection.stop()
    return findings
  }

  /// Nothing more is to be learnt: everything is joined, or what is not has been refused once.
  static func isSettled(_ status: RealtimeStatus) -> Bool {
    if status.isReady { return true }
    switch status.state {
    case .awaitingCredentials, .suspended: return true
    case .backingOff where status.counters.opened == 0:
      return status.attempt >= 2 || status.lastFailure.map { $0.failureClass != .transient } ?? false
    default: break
    }
    return status.counters.opened > 0 && !status.topics.isEmpty
      && status.topics.allSatisfy { $0.state == .joined || $0.lastFailure != nil }
  }

  // MARK: The ring

  /// Asks the server to broadcast what its database would (Realtime wire contract §14).
  /// - Returns: `notHeard` when it will.
  private func broadcast(_ table: String) async -> RealtimeVerdict.Ring {
    guard let address = Self.broadcastURL(configuration, table: table) else {
      return .notTried("it is not known where this server takes broadcasts by HTTP")
    }
    var headers = [HTTPHeader("Authorization", "Bearer \(token)"), HTTPHeader("Content-Type", "application/json")]
    let key = configuration.publishableKey.value
    if !key.isEmpty { headers.append(HTTPHeader("apikey", key)) }
    let request = HTTPRequest(
      method: "POST", url: address, headers: headers, body: JSONWriter.data(["t": .string(table)]))
    do {
      let response = try await parts.http.send(request)
      return (200..<300).contains(response.status) ? .notHeard : .refused(status: response.status)
    } catch {
      return .failed((error as? HTTPError)?.message ?? "the request was interrupted")
    }
  }

  /// Nil for a WebSocket at an address that says nothing about its neighbours.
  static func broadcastURL(_ configuration: GatewayConfiguration, table: String) -> String? {
    let suffix = "/api/broadcast/\(RealtimeVerdict.topic(table))/events/changed?private=true"
    guard let url = configuration.realtimeURL else { return configuration.url.http("/realtime/v1" + suffix) }
    for (tail, base) in [("/realtime/v1/websocket", "/realtime/v1"), ("/socket/websocket", "")]
    where url.path.hasSuffix(tail) {
      return "\(url.isSecure ? "https" : "http")://\(url.authority)\(url.path.dropLast(tail.count))\(base)\(suffix)"
    }
    return nil
  }
}

/// One token, which cannot be replaced here.
private struct GivenToken: RealtimeCredentials {
  let token: String

  func accessToken(refresh: Bool) async throws -> String? { refresh ? nil : token }
}
