import HostKit
import PhoenixChannels
import SupabaseRealtime
import SyncServer

/// A running development server: sync, sign-in and Realtime behind one port, with faults on demand.
///
/// Every commit rings `realtime.send`-style on the private topic `kizunasync:<table>`, event `changed`, payload
/// `{"t":"<table>"}`, once for each table it changed.
public final class LocalStack: Sendable {
  public struct Options: Sendable {
    /// A numeric address, or a name of this machine.
    public var host = "127.0.0.1"
    /// 0 lets the system choose.
    public var port: UInt16 = 0
    /// PEM files; nil serves plain `http` and `ws`.
    public var tls: (certificate: String, key: String)?
    public var realtime = RealtimeSettings()
    public var policy = RealtimePolicy.signedIn()
    public var clock: any HostClock = SystemClock.shared
    public var log = HostLog.none

    public init() {}
  }

  /// What every request is answered with instead, while it is set; the request goes through where it returns nil.
  public typealias RequestFault = @Sendable (StackRequest) async -> StackResponse?

  /// `http://host:port` or `https://host:port`.
  public let url: String
  public let host: String
  public let port: UInt16
  public let services: LocalStackServices
  private let assembly: StackAssembly
  private let fault: Locked<RequestFault?>
  private let commitHandler: Int
  private let lastWait = Locked<UInt64>(0)

  private init(
    _ services: LocalStackServices, _ assembly: StackAssembly, _ fault: Locked<RequestFault?>, commitHandler: Int
  ) {
    self.services = services
    self.assembly = assembly
    self.fault = fault
    self.commitHandler = commitHandler
    host = assembly.server.host
    port = assembly.server.port
    url = assembly.url
  }

  /// - Throws: `StackServerError` when the address cannot be used, `StateDirectoryError` when the directory cannot.
  public static func start(
    _ configuration: LocalStackConfiguration, options: Options = Options()
  ) async throws -> LocalStack {
    let services = try LocalStackServices(configuration, clock: options.clock, log: options.log)
    let fault = Locked<RequestFault?>(nil)
    do {
      let assembly = try await StackAssembly.start(
        options, secret: services.tokens.secret, policy: options.policy
      ) { _ in FaultyHandler(fault: fault, handler: StackRouter(services)) }
      let hub = assembly.hub
      let handler = await services.server.onCommit { commit in
        let tables = commit.tables
        hub.loop.run {
          hub.assumeIsolated { hub in
            for table in tables {
              hub.sendFromDatabase(topic: "kizunasync:\(table)", event: "changed", payload: ["t": .string(table)])
            }
          }
        }
      }
      return LocalStack(services, assembly, fault, commitHandler: handler)
    } catch {
      try? await services.close()
      throw error
    }
  }

  /// Closes all sockets, frees the port and writes the state down. Nothing may be asked afterwards.
  ///
  /// - Throws: when the state directory could not be written.
  public func stop() async throws {
    await services.server.removeCommitHandler(commitHandler)
    await assembly.hub.endWatching()
    await assembly.stop()
    try await services.close()
  }

  // MARK: Who may use it

  /// The key that clients send with every request: an `anon` token.
  public var publishableKey: String { services.tokens.publishableKey }
  public var jwtSecret: String { services.tokens.secret }
  public var users: [StackUser] { services.users }
  public var server: SyncServer { services.server }
  /// `ws://…/realtime/v1/websocket`, without the key.
  public var realtimeURL: String { "ws" + url.dropFirst(4) + "/realtime/v1/websocket" }

  // MARK: Realtime

  /// WebSockets that are open now.
  public var openSockets: Int { get async { await assembly.hub.socketCount } }

  /// WebSockets accepted since the start.
  public var acceptedSockets: Int { get async { await assembly.hub.totalSockets } }

  /// Sockets and joins, as the server counts them; `GET /_localstack/realtime` answers the same.
  public var realtimeCounts: RealtimeCounts { get async { await assembly.hub.counts } }

  /// Waits until the counts are as wanted.
  ///
  /// - Parameter condition: called on the server's thread; must be short.
  /// - Returns: false when the task was cancelled or the server stopped before that.
  @discardableResult
  public func waitForRealtime(_ condition: @escaping @Sendable (RealtimeCounts) -> Bool) async -> Bool {
    let id = lastWait.withLock { last -> UInt64 in
      last += 1
      return last
    }
    return await assembly.hub.wait(id, until: condition)
  }

  /// How many sockets have joined a topic.
  ///
  /// - Parameter topic: without the `realtime:` prefix.
  public func members(of topic: String, isPrivate: Bool = true) async -> Int {
    await assembly.hub.memberCount(of: RealtimeRoom(topic: topic, isPrivate: isPrivate))
  }

  /// Sends as a database function does: `realtime.send(payload, event, topic, private)`.
  ///
  /// - Returns: to how many sockets it went.
  @discardableResult
  public func send(
    topic: String, event: String, payload: [String: JSONValue], isPrivate: Bool = true
  ) async -> Int {
    await assembly.hub.sendFromDatabase(topic: topic, event: event, payload: payload, isPrivate: isPrivate)
  }

  /// The same with opaque bytes: `realtime.send_binary(payload, event, topic, private)`. Clients of version 1.0.0 hear
  /// nothing of it.
  @discardableResult
  public func sendBinary(topic: String, event: String, bytes: [UInt8], isPrivate: Bool = true) async -> Int {
    await assembly.hub.sendFromDatabase(topic: topic, event: event, bytes: bytes, isPrivate: isPrivate)
  }

  // MARK: Faults

  /// Answers every upgrade with this status and body, at once; nil lets the rules decide again.
  public func refuseUpgrades(status: Int?, body: String = "", headers: [StackHeader] = []) async {
    let verdict = status.map {
      StackUpgradeVerdict.refuse(
        StackResponse(status: $0, headers: headers, body: Array(body.utf8)), after: 0)
    }
    await assembly.hub.setFaults { $0.upgrade = verdict }
  }

  /// Takes upgrade requests and never answers them, until `refuseUpgrades(status: nil)`.
  public func ignoreUpgrades() async {
    await assembly.hub.setFaults { $0.upgrade = .ignore }
  }

  /// Cuts every WebSocket: with a TCP reset, or with an orderly end of the stream but no close frame.
  public func dropSockets(reset: Bool = false) async {
    await assembly.hub.dropAll(reset: reset)
  }

  /// Closes every WebSocket with a code, after `Server requested disconnect` on every channel where that is wanted.
  public func closeSockets(code: UInt16, announced: Bool = false) async {
    await assembly.hub.disconnectAll(code: code, announced: announced)
  }

  /// Half-open connections: WebSocket messages are swallowed and nothing is sent, until it is switched off.
  public func setSilent(_ isSilent: Bool) async {
    await assembly.hub.setFaults { $0.isSilent = isSilent }
  }

  /// While on, messages of the database are lost, as on a server without a replication connection.
  public func setLosesDatabaseMessages(_ isLost: Bool) async {
    await assembly.hub.setFaults { $0.losesDatabaseMessages = isLost }
  }

  /// While on, joins are refused as on a server that is about to restart.
  public func setRestarting(_ isRestarting: Bool) async {
    await assembly.hub.setRules { $0.isRestarting = isRestarting }
  }

  /// Changes the numbers of the Realtime server, for open sockets too.
  public func changeRealtime(_ change: @escaping @Sendable (inout RealtimeSettings) -> Void) async {
    await assembly.hub.setRules { change(&$0.settings) }
  }

  /// Answers plain requests instead of the services, or delays them; nil ends it.
  public func setRequestFault(_ fault: RequestFault?) {
    self.fault.withLock { $0 = fault }
  }
}

private struct FaultyHandler: StackHandler {
  let fault: Locked<LocalStack.RequestFault?>
  let handler: any StackHandler

  func handle(_ request: StackRequest) async -> StackResponse {
    if let fault = fault.withLock({ $0 }), let response = await fault(request) { return response }
    return await handler.handle(request)
  }
}

/// The signature check of the stack's own tokens.
struct StackTokenVerifier: TokenVerifier {
  let secret: String

  func claims(of token: String) throws(TokenProblem) -> JSONValue {
    do throws(JWT.Problem) {
      return .object(try JWT.claims(of: token, secret: secret))
    } catch {
      throw error == .malformed ? .malformed : .badSignature
    }
  }
}
