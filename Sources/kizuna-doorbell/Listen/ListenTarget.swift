import HTTPClient
import HostKit
import KizunaDoorbell
import PhoenixChannels
import SupabaseRealtime
import SupabaseSession

/// What `listen` connects to, from a configuration, from options, or from both, options first.
struct ListenTarget {
  var realtime: RealtimeConfiguration
  /// Names without prefix.
  var topics: [String]
  /// Nil joins with the key alone.
  var credentials: (any RealtimeCredentials)?
  /// Tells the connection of new tokens, and ends what the credentials need when it is closed.
  private var session: SupabaseSession?

  init(realtime: RealtimeConfiguration, topics: [String]) {
    self.realtime = realtime
    self.topics = topics
  }

  /// Hands every new token to a connection, for as long as what it returns is kept.
  func follow(_ connection: RealtimeConnection) async -> SessionSubscription? {
    guard let session else { return nil }
    await session.start()
    return session.onToken { [weak connection] token in connection?.setAccessToken(token?.value) }
  }

  func close() async { await session?.stop() }

  static let options: [OptionSpecification] = [
    ConfigurationOption.option,
    .value("table", "NAME", "a table whose topic is joined; default all of the configuration", repeatable: true),
    .value("url", "URL", "the project's address"),
    .value("realtime-url", "URL", "the WebSocket's own address, ws:// or wss://"),
    .value("publishable-key", "KEY", "the key that opens the connection"),
    .value("publishable-key-file", "FILE", "the same from a file"),
    .value(
      "access-token", "TOKEN",
      "the signed-in user's token, for private channels; every user of this host can see it while the command runs"),
    .value("access-token-file", "FILE", "the same from a file, which nobody else sees"),
    .value("authority-file", "FILE", "certificate authorities to trust besides the system's, PEM"),
    .choice("vsn", PhoenixVersion.allCases.map(\.rawValue), "the serializer version; default 2.0.0"),
    .flag("public", "join public channels; Kizuna's are private"),
  ]

  /// - Parameter onFailure: hears why the session has no token.
  /// - Throws: `UsageError`, `ConfigurationError`, `CommandFailure` for a token that is over.
  static func resolve(
    _ arguments: Arguments, _ configuration: GatewayConfiguration?, http: any HTTPTransport, log: HostLog,
    onFailure: @escaping @Sendable (SessionFailure) -> Void
  ) throws -> ListenTarget {
    let project = try url(arguments, "url", .http)
    let webSocket = try url(arguments, "realtime-url", .webSocket)
    var endpoint: RealtimeConfiguration.Endpoint
    switch (webSocket, project, configuration) {
    case (let webSocket?, _, _): endpoint = .webSocket(webSocket)
    case (nil, let project?, _): endpoint = .project(project)
    case (nil, nil, let configuration?):
      endpoint = configuration.realtimeURL.map { .webSocket($0) } ?? .project(configuration.url)
    case (nil, nil, nil): throw UsageError("--config FILE is missing, or --url URL or --realtime-url URL instead of it")
    }
    guard let key = try secret(arguments, "publishable-key") ?? configuration?.publishableKey.value else {
      throw UsageError("--publishable-key is missing: --publishable-key KEY, or --publishable-key-file FILE")
    }
    let tables = try tables(arguments, configuration)
    var realtime = RealtimeConfiguration(
      endpoint: endpoint, apiKey: key, version: arguments.value("vsn").flatMap(PhoenixVersion.init) ?? .v2)
    if let configuration { realtime.policy = configuration.realtimePolicy }
    realtime.policy.privateChannels = !arguments.flag("public")

    var target = ListenTarget(realtime: realtime, topics: tables.map { "kizunasync:\($0)" })
    if let token = try secret(arguments, "access-token") {
      if let end = UnverifiedToken(token)?.expiresAt, end <= SystemClock.shared.wallMilliseconds / 1000 {
        throw CommandFailure(.authentication, "the access token given has expired; get a new one")
      }
      target.credentials = FixedCredentials(token: token)
    } else if let configuration {
      let session = configuration.makeSession(http: http, stateFile: nil, log: log)
      target.credentials = ReportedCredentials(session: session, onFailure: onFailure)
      target.session = session
    }
    return target
  }

  /// - Throws: `UsageError` for a file that cannot be read.
  static func authorityFile(
    _ arguments: Arguments, _ configuration: GatewayConfiguration?
  ) throws(UsageError) -> String? {
    guard let file = arguments.value("authority-file") else { return configuration?.authorityFile }
    let bytes: [UInt8]
    do throws(HostFileError) { bytes = try HostFile.read(file) } catch {
      throw UsageError("--authority-file: \(error.description)")
    }
    guard String(decoding: bytes, as: UTF8.self).contains("-----BEGIN ") else {
      throw UsageError("--authority-file: \"\(file)\" holds no certificate in PEM form")
    }
    return file
  }

  private static func secret(_ arguments: Arguments, _ option: String) throws(UsageError) -> String? {
    let file = arguments.value("\(option)-file")
    guard let text = arguments.value(option) else {
      guard let file else { return nil }
      do throws(ConfigurationSecretError) {
        return try ConfigurationSecret(reading: .file(path: file), form: .token).value
      } catch { throw UsageError("--\(option)-file: \(error.message)") }
    }
    if file != nil { throw UsageError("--\(option) and --\(option)-file exclude each other") }
    if let wrong = SecretText.problem(text, .token) { throw UsageError("--\(option) \(wrong)") }
    return text
  }

  /// Those named, else all of the configuration.
  private static func tables(
    _ arguments: Arguments, _ configuration: GatewayConfiguration?
  ) throws(UsageError) -> [String] {
    let given = arguments.values("table")
    for table in given {
      guard TableDeclaration.isName(table) else {
        throw UsageError("--table must be a table's name, of a to z, 0 to 9 and _; \"\(table)\" is not")
      }
      if let known = configuration?.tables.keys.sorted(), !known.contains(table) {
        let near = NearestName.hint(known, for: table)
        throw UsageError(
          "--table \(table) is not in the configuration\(near.isEmpty ? "; it has \(known.joined(separator: ", "))" : near)"
        )
      }
    }
    let tables = given.isEmpty ? configuration?.tables.keys.sorted() ?? [] : given
    guard !tables.isEmpty else { throw UsageError("--table is missing: --table NAME") }
    return tables
  }

  private static func url(
    _ arguments: Arguments, _ option: String, _ use: ServerURL.Use
  ) throws(UsageError) -> ServerURL? {
    guard let text = arguments.value(option) else { return nil }
    do throws(ServerURLError) { return try ServerURL(text, for: use) } catch {
      throw UsageError("--\(option): \(error.message)")
    }
  }
}

/// The configured session's tokens. Why there is none is told as well: the connection only waits.
private struct ReportedCredentials: RealtimeCredentials {
  let session: SupabaseSession
  let onFailure: @Sendable (SessionFailure) -> Void

  func accessToken(refresh: Bool) async throws -> String? {
    do {
      return try await session.accessToken(refresh: refresh).value
    } catch let failure as SessionFailure {
      onFailure(failure)
      if failure.kind == .authentication { return nil }
      throw failure
    }
  }
}

/// One token, as given on the command line.
private struct FixedCredentials: RealtimeCredentials {
  let token: String

  /// A refused token cannot be replaced here.
  func accessToken(refresh: Bool) async throws -> String? { refresh ? nil : token }
}
