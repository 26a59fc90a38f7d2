import HostKit
import KizunaSync
import PhoenixChannels

/// What a gateway needs to know: the server, the database, the tables, and who is signed in.
///
/// Usually read from a file (``load(file:secrets:)``); everything can be set in code too.
public struct GatewayConfiguration: Sendable {
  /// Who is signed in, and how.
  public enum Session: Sendable, Hashable {
    /// A ready token. From a file it is read again whenever a fresh one is needed.
    case accessToken(ConfigurationSecret)
    case password(email: String, password: ConfigurationSecret)
  }

  /// The project's base address.
  public var url: ServerURL
  /// The WebSocket address when it is not `<url>/realtime/v1/websocket`.
  public var realtimeURL: ServerURL?
  public var publishableKey: ConfigurationSecret
  /// Path of a PEM file with certificate authorities that are trusted besides the system's; nil takes the one that the
  /// environment's `SSL_CERT_FILE` names, if any.
  public var authorityFile: String?
  /// Path of the SQLite file.
  public var database: String
  public var tables: [String: TableDeclaration]
  /// Columns of any table that stay on this host: never sent, and left alone by what the server sends.
  public var localOnlyColumns: [String] = []
  public var session: Session
  /// Nanoseconds between pulls that nothing asked for.
  public var pollInterval: UInt64
  /// Nanoseconds between visibility sweeps, see `KizunaSyncClient.sweep()`.
  public var sweepInterval: UInt64 = defaultSweepInterval
  /// The app's data version, which a server may refuse as too old.
  public var schemaVersion: Int
  /// Heartbeats, reconnects and joins of the WebSocket. `usesCredentials` is set by the gateway.
  public var realtimePolicy = ConnectionPolicy()
  /// How often the gateway pulls while the doorbell does not stop ringing.
  public var runPacing = RunPacing()
  /// Nanoseconds. A timer this late, or connections unused for this much longer than the poll interval, tell that the
  /// host or this process was asleep: peers may be gone without a word.
  public var resumeThreshold: UInt64 = .seconds(30)

  public static let defaultPollInterval: UInt64 = .seconds(15)
  public static let defaultSweepInterval: UInt64 = .seconds(86_400)

  public init(
    url: ServerURL, realtimeURL: ServerURL? = nil, publishableKey: ConfigurationSecret, database: String,
    tables: [String: TableDeclaration], session: Session, pollInterval: UInt64 = defaultPollInterval,
    schemaVersion: Int = 1
  ) {
    self.url = url
    self.realtimeURL = realtimeURL
    self.publishableKey = publishableKey
    self.database = database
    self.tables = tables
    self.session = session
    self.pollInterval = pollInterval
    self.schemaVersion = schemaVersion
  }
}

extension GatewayConfiguration {
  /// Reads a file in JSON with comments and trailing commas. Paths in it are relative to its folder.
  ///
  /// - Parameter secrets: `.ifReadable` for who signs nobody in; what cannot be read is empty then.
  /// - Returns: the configuration, and what its owner should know, such as a secret that every user can read.
  /// - Throws: `ConfigurationError` with every problem.
  public static func load(
    file: String, secrets: ConfigurationDocument.SecretReading = .now
  ) throws(ConfigurationError) -> (configuration: GatewayConfiguration, warnings: [ConfigurationProblem]) {
    let (value, warnings) = try ConfigurationDocument.decode(file: file, secrets: secrets, decode)
    return (value, warnings)
  }

  /// The same from text; `file` gives the folder and the name in messages.
  public static func load(text: String, file: String) throws(ConfigurationError) -> (
    configuration: GatewayConfiguration, warnings: [ConfigurationProblem]
  ) {
    let (value, warnings) = try ConfigurationDocument.decode(file: file, text: text, decode)
    return (value, warnings)
  }

  /// The tables of a file, for who prepares a server for them: nothing else in it is needed, and no secret is read.
  ///
  /// - Throws: `ConfigurationError` with every problem of the tables, and of keys that no configuration has.
  public static func loadTables(file: String) throws(ConfigurationError) -> [String: TableDeclaration] {
    try ConfigurationDocument.decode(file: file) { root in
      root.passOver([
        "url", "realtimeURL", "publishableKey", "authorityFile", "database", "localOnlyColumns", "session",
        "pollInterval", "sweepInterval", "schemaVersion", "realtime", "resumeThreshold",
      ])
      return TableDeclaration.decodeTables(root)
    }.value
  }

  private static func decode(_ root: ConfigurationObject) -> GatewayConfiguration? {
    let url = root.serverURL("url", required: "the project's address, for example \"https://<ref>.supabase.co\"")
    let realtimeURL = root.serverURL("realtimeURL", for: .webSocket)
    if let address = realtimeURL ?? url, address.isSecure, address.host.contains(":") {
      // libwebsockets takes the name to verify from the Host line up to the first colon.
      root.problem(
        realtimeURL == nil ? "url" : "realtimeURL", "an encrypted WebSocket needs a host name or an IPv4 address")
    }
    let key = root.secret(
      "publishableKey", form: .token, required: "the project's publishable (anon) key", isPublic: true)
    let database = root.path("database", required: "the path of the SQLite file")
    if let database, database.hasSuffix(":memory:") {
      root.problem("database", "a database in memory is gone with the process; name a file")
    }
    let authorityFile = decodeAuthorityFile(root)
    let tables = TableDeclaration.decodeTables(root)
    let localOnlyColumns = root.strings("localOnlyColumns")
    let session = root.object(
      "session", required: "who is signed in, {\"email\": …, \"passwordFile\": …} or {\"accessTokenFile\": …}",
      decodeSession)
    let pollInterval = root.seconds("pollInterval", in: 1...86_400)
    let sweepInterval = root.seconds("sweepInterval", in: 60...31_536_000)
    let schemaVersion = root.integer("schemaVersion", in: 1...Int(Int32.max))
    let policy = root.object("realtime", decodePolicy)
    let resumeThreshold = root.seconds("resumeThreshold", in: 1...3_600)
    guard let url, let key, let database, let tables, let session else { return nil }
    var configuration = GatewayConfiguration(
      url: url, realtimeURL: realtimeURL, publishableKey: key, database: database, tables: tables, session: session,
      pollInterval: pollInterval ?? defaultPollInterval, schemaVersion: schemaVersion ?? 1)
    configuration.authorityFile = authorityFile
    configuration.localOnlyColumns = localOnlyColumns ?? []
    if let sweepInterval { configuration.sweepInterval = sweepInterval }
    if let policy { configuration.realtimePolicy = policy }
    if let resumeThreshold { configuration.resumeThreshold = resumeThreshold }
    return configuration
  }

  private static func decodeAuthorityFile(_ root: ConfigurationObject) -> String? {
    guard let path = root.path("authorityFile") else { return nil }
    do throws(HostFileError) {
      let text = String(decoding: try HostFile.read(path), as: UTF8.self)
      if !text.contains("-----BEGIN ") { root.problem("authorityFile", "\(path) holds no certificate in PEM form") }
    } catch {
      root.problem("authorityFile", error.description)
    }
    return path
  }

  private static func decodePolicy(_ object: ConfigurationObject) -> ConnectionPolicy? {
    var policy = ConnectionPolicy()
    // The server drops clients that send nothing for 60 s (Realtime wire contract §8).
    if let interval = object.seconds("heartbeatInterval", in: 0.1...50) { policy.heartbeat.interval = interval }
    if let deadline = object.seconds("heartbeatDeadline", in: 0.1...60) { policy.heartbeat.deadline = deadline }
    if let base = object.seconds("reconnectBase", in: 0.01...60) { policy.reconnect.base = base }
    if let cap = object.seconds("reconnectCap", in: 0.01...3_600) { policy.reconnect.cap = cap }
    if let budget = object.integer("reconnectBudget", in: 1...1_000_000) { policy.reconnect.budget = budget }
    if policy.reconnect.cap < policy.reconnect.base {
      object.problem("reconnectCap", "must not be less than \"reconnectBase\"")
    }
    return policy
  }

  private static func decodeSession(_ object: ConfigurationObject) -> Session? {
    let token = object.secret("accessToken", form: .token)
    let tokenFile = object.secretFile("accessTokenFile", form: .token)
    let email = object.string("email") { text in
      let parts = text.split(separator: "@", omittingEmptySubsequences: false)
      return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } ? nil : "this is not an e-mail address"
    }
    let password = object.secret("password", form: .text)
    let passwordFile = object.secretFile("passwordFile", form: .text)

    let ways = [object.has("accessToken"), object.has("accessTokenFile"), object.has("email")]
    guard ways.filter(\.self).count == 1 else {
      object.problem(
        nil,
        "give exactly one of \"accessToken\", \"accessTokenFile\", or \"email\" with \"passwordFile\" or \"password\"")
      return nil
    }
    guard object.has("email") else {
      for key in ["password", "passwordFile"] where object.has(key) {
        object.problem(key, "belongs to \"email\"; remove it")
      }
      return (token ?? tokenFile).map(Session.accessToken)
    }
    guard object.has("password") != object.has("passwordFile") else {
      object.problem(nil, "give \"email\" one of \"passwordFile\" and \"password\"")
      return nil
    }
    guard let email, let password = password ?? passwordFile else { return nil }
    return .password(email: email, password: password)
  }
}

extension ConfigurationObject {
  /// An address under the rule for plain text (Kizuna wire contract, section 2).
  fileprivate func serverURL(_ key: String, for use: ServerURL.Use = .http, required meaning: String? = nil)
    -> ServerURL?
  {
    var url: ServerURL?
    _ = string(key, required: meaning) { text in
      do throws(ServerURLError) {
        url = try ServerURL(text, for: use)
        return nil
      } catch { return error.message }
    }
    return url
  }
}
