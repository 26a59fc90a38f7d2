import HTTPClient
import HostKit
import KizunaSync
import SupabaseSession

/// Looks at everything a gateway needs: the file, the way to the server, the credentials, the functions, the doorbell.
/// It goes on after a failure, writes nothing to the database and no row to the server, and takes no lock, so that it may
/// be used beside a `run`.
///
/// What it leaves behind: a sign-in of its own, where a password is configured; and on servers that let users ring, one
/// spurious ring, which costs each gateway an empty pull.
package struct Doctor: Sendable {
  private let configuration: GatewayConfiguration
  private let parts: GatewayParts
  private let environment: [String: String]
  private let log: HostLog

  /// - Parameters:
  ///   - parts: made by `GatewayParts.live` when nil; ended by `examine`.
  ///   - environment: the variables that name proxies.
  package init(
    _ configuration: GatewayConfiguration, parts: GatewayParts? = nil,
    environment: [String: String] = ProcessEnvironment.variables, log: HostLog = .none
  ) {
    self.configuration = configuration
    self.parts = parts ?? .live(authorityFile: configuration.authorityFile)
    self.environment = environment
    self.log = log
  }

  /// Runs every check once.
  ///
  /// - Parameter report: hears of each finding when it is there.
  /// - Returns: all of them, in their order.
  package func examine(_ report: (Finding) -> Void = { _ in }) async -> [Finding] {
    var all: [Finding] = []
    func add(_ findings: [Finding]) {
      findings.forEach(report)
      all += findings
    }
    let path = configuration.database
    let database = await Self.blocking { DatabaseExamination.examine(databasePath: path) }
    add(DatabaseVerdict.findings(database, path: path))
    add(ReplicaVerdict.findings(database.status, now: parts.clock.wallMilliseconds))
    add(NetworkVerdict.proxies(targets, environment: environment))
    add([await lookUp()])
    let visit = await visit()
    add(visit.findings)
    add(
      visit.isAnswered
        ? await online(database, clockOffset: visit.clockOffset)
        : Self.needServer.map { .skipped($0, "the server did not answer") })
    await parts.shutdown()
    return all
  }

  private static let needServer: [Finding.Check] = [.signIn, .token, .pull, .push, .realtime, .join, .ring]

  // MARK: The way to the server

  private var targets: [(name: String, server: ServerURL)] {
    var targets = [(name: "requests go to \(configuration.url.label)", server: configuration.url)]
    if let url = configuration.realtimeURL { targets.append((name: "the WebSocket to \(url.label)", server: url)) }
    return targets
  }

  private func lookUp() async -> Finding {
    let server = configuration.url
    let proxy = ProxyRule(environment: environment).proxy(for: server)
    return NetworkVerdict.lookup(
      server, proxy: proxy, addresses: await NameLookup.addresses(of: server.host, clock: parts.clock))
  }

  private struct Visit {
    var findings: [Finding]
    var isAnswered: Bool
    /// Milliseconds.
    var clockOffset: Int64
  }

  /// One request with nothing but the key: whether the server is there, takes the key, and what time it has.
  private func visit() async -> Visit {
    let key = configuration.publishableKey.value
    var request = HTTPRequest(method: "GET", url: configuration.url.http("/auth/v1/health"))
    if !key.isEmpty { request.headers.append(HTTPHeader("apikey", key)) }
    let asked = parts.clock.wallMilliseconds
    let started = parts.clock.now
    var answer: Result<HTTPResponse, HTTPError>
    do {
      answer = .success(try await parts.http.send(request))
    } catch {
      answer = .failure(error as? HTTPError ?? HTTPError(.other, "the request was interrupted"))
    }
    let clock = ClockVerdict(
      server: (try? answer.get())?.serverDate, asked: asked, answered: parts.clock.wallMilliseconds)
    let status = (try? answer.get())?.status
    let server = NetworkVerdict.server(
      configuration.url, answer.map(\.status), duration: parts.clock.now - started)
    let keyFinding = KeyVerdict.finding(
      key, server: configuration.url, status: status, now: parts.clock.wallMilliseconds + clock.offset)
    return Visit(
      findings: [server, clock.finding, keyFinding], isAnswered: status != nil, clockOffset: clock.offset)
  }

  // MARK: With a token

  private func online(_ database: DatabaseExamination, clockOffset: Int64) async -> [Finding] {
    let (signIn, token) = await SignInProbe(configuration, parts: parts, log: log).run()
    guard let token else {
      return [signIn] + Self.needServer.dropFirst().map { .skipped($0, "there is no access token") }
    }
    let claims = UnverifiedToken(token)
    let verdict = TokenVerdict(
      claims: claims, isKey: token == configuration.publishableKey.value, server: configuration.url,
      now: parts.clock.wallMilliseconds + clockOffset, owner: database.owner)
    let functions = FunctionProbe(configuration, http: parts.http, token: token, subject: claims?.subject)
    let pulls = await functions.pulls(cursor: database.cursor ?? "0")
    let push = await functions.push()
    let realtime = await RealtimeProbe(configuration, parts: parts, token: token, log: log).run()
    return [signIn, verdict.finding] + pulls + [push] + realtime
  }

  /// Runs what blocks on a thread of its own.
  static func blocking<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      HostThread.detach(name: "kizuna-doctor") { continuation.resume(returning: body()) }
    }
  }
}
