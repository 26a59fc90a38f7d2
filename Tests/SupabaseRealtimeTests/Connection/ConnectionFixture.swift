import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import SupabaseRealtime

/// A connection over a scripted transport and a virtual clock, with everything that came out of it.
final class ConnectionFixture: Sendable {
  let clock = VirtualClock()
  let transport: ScriptedTransport
  let connection: RealtimeConnection
  private let heard = Locked<[RealtimeRing]>([])
  private let lines = Locked<[String]>([])
  private let listener = Locked<(@Sendable (Int) -> Void)?>(nil)

  init(
    _ script: RealtimeScript = [], afterwards: ScriptedTransport.Afterwards = .cooperate,
    credentials: (any RealtimeCredentials)? = nil, version: PhoenixVersion = .v2,
    jitter: @escaping @Sendable () -> Double = { 1 }
  ) throws {
    transport = ScriptedTransport(clock: clock, script, afterwards: afterwards)
    let url = try ServerURL("http://127.0.0.1:9")
    let (lines, listener) = (lines, listener)
    let log = HostLog(minimum: .debug) { level, event, fields in
      let number = lines.withLock { lines -> Int in
        lines.append("\(level) \(event) \(fields)")
        return lines.count
      }
      listener.withLock { $0 }?(number)
    }
    connection = RealtimeConnection(
      RealtimeConfiguration(url: url, apiKey: "publishable-secret", version: version), transport: transport,
      credentials: credentials, clock: clock, log: log, jitter: jitter)
  }

  /// Subscribes and remembers the rings.
  func listen(_ topics: String...) throws -> RealtimeSubscription {
    let heard = heard
    return try connection.subscribe(topics: topics) { ring in heard.withLock { $0.append(ring) } }
  }

  /// Calls `body` with the number of each line of the log as it is written, in the middle of what the connection does.
  func onLine(_ body: @escaping @Sendable (Int) -> Void) { listener.withLock { $0 = body } }

  var rings: [RealtimeRing] { heard.withLock { $0 } }
  var logged: [String] { lines.withLock { $0 } }

  /// Started, subscribed and joined.
  static func joined(_ topics: String...) async throws -> (ConnectionFixture, RealtimeSubscription) {
    let fixture = try ConnectionFixture()
    let heard = fixture.heard
    let subscription = try fixture.connection.subscribe(topics: topics) { ring in heard.withLock { $0.append(ring) } }
    fixture.connection.start()
    await fixture.clock.settle()
    return (fixture, subscription)
  }
}

/// A session owner that a test plays.
final class ScriptedCredentials: RealtimeCredentials, Sendable {
  enum Answer: Sendable {
    case token(String?)
    case failure
    /// Answers after so many nanoseconds.
    case later(UInt64, String?)
  }

  private struct Away: Error {}
  private let clock: VirtualClock?
  private let answers: Locked<[Answer]>
  private let asked = Locked<[Bool]>([])

  /// The last answer is repeated.
  init(_ answers: Answer..., clock: VirtualClock? = nil) {
    self.answers = Locked(answers)
    self.clock = clock
  }

  /// `refresh` of each question.
  var questions: [Bool] { asked.withLock { $0 } }

  func accessToken(refresh: Bool) async throws -> String? {
    asked.withLock { $0.append(refresh) }
    let answer = answers.withLock { $0.count > 1 ? $0.removeFirst() : $0.first }
    switch answer {
    case .token(let token): return token
    case .failure, nil: throw Away()
    case .later(let delay, let token):
      try await clock?.sleep(nanoseconds: delay)
      return token
    }
  }
}
