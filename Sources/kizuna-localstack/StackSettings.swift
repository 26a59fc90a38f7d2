import HostKit
import LocalStack
import SyncServer

/// What the command line and the configuration file ask for; the command line wins, tables and users add up.
struct StackSettings {
  var host = "127.0.0.1"
  var port: UInt16 = 0
  var tls: (certificate: String, key: String)?
  var configuration = LocalStackConfiguration(tables: [:])
  /// The tables of the file, as it declares them.
  var declarations: [String: TableDeclaration] = [:]
  /// A connection URL.
  var postgres: String?

  /// - Throws: `UsageError` or `ConfigurationError`.
  init(_ arguments: Arguments) throws {
    if let file = arguments.value("config") {
      self = try ConfigurationDocument.decode(file: file, Self.decode).value
    }
    if let host = arguments.value("host") { self.host = host }
    if let port = try arguments.integer("port", in: 0...65_535) { self.port = UInt16(port) }
    if let directory = arguments.value("directory") { configuration.directory = directory }
    if let url = arguments.value("postgres") { postgres = try Self.address(url) }
    if postgres != nil, configuration.directory != nil {
      throw UsageError("the database keeps the state, so that --directory and --postgres exclude each other")
    }
    if postgres == nil, arguments.flag("no-scaffolding") { throw UsageError("--no-scaffolding belongs to --postgres") }
    if let secret = arguments.value("jwt-secret") {
      if secret.allSatisfy(\.isWhitespace) { throw UsageError("--jwt-secret must not be empty") }
      configuration.jwtSecret = secret
    }
    var named: Set<String> = []
    for text in arguments.values("table") {
      let (name, table) = try LocalStackConfiguration.table(argument: text)
      guard named.insert(name).inserted else { throw UsageError("--table names \(name) twice; keep one") }
      configuration.tables[name] = table
    }
    for text in arguments.values("user") {
      guard let user = LocalStackConfiguration.user(argument: text) else {
        throw UsageError("--user must be EMAIL:PASSWORD")
      }
      configuration.users.append(user)
    }
    switch (arguments.value("tls-cert"), arguments.value("tls-key")) {
    case (let certificate?, let key?): tls = (certificate, key)
    case (nil, nil): break
    default: throw UsageError("--tls-cert and --tls-key belong together")
    }
    if Set(configuration.users.map { $0.email.lowercased() }).count < configuration.users.count {
      throw UsageError("a user is given twice; keep one")
    }
  }

  private init() {}

  private static func address(_ text: String) throws -> String {
    guard text.hasPrefix("env:") else { return text }
    let name = String(text.dropFirst(4))
    guard let value = ProcessEnvironment.variables[name], !value.isEmpty else {
      throw CommandFailure(.configuration, "--postgres names a variable that is not set: \(name)")
    }
    return value
  }

  private static func decode(_ root: ConfigurationObject) -> StackSettings? {
    var settings = StackSettings()
    if let host = root.string("host") { settings.host = host }
    if let port = root.integer("port", in: 0...65_535) { settings.port = UInt16(port) }
    settings.configuration.directory = root.path("directory")
    settings.configuration.jwtSecret = root.secret("jwtSecret", form: .text)?.value
    settings.postgres = root.secret("postgres", form: .text)?.value
    settings.declarations = TableDeclaration.decodeTables(root) ?? [:]
    settings.configuration.tables = settings.declarations.mapValues(SyncTable.init)
    settings.configuration.users = root.object("users", decodeUsers) ?? []
    let certificate = root.path("tlsCertificate")
    let key = root.path("tlsKey")
    if let certificate, let key { settings.tls = (certificate, key) }
    if root.has("tlsCertificate") != root.has("tlsKey") {
      root.problem(
        root.has("tlsKey") ? "tlsKey" : "tlsCertificate", "\"tlsCertificate\" and \"tlsKey\" belong together")
    }
    return settings
  }

  /// `"users": {"ann@example.com": "password"}`
  private static func decodeUsers(_ object: ConfigurationObject) -> [LocalStackConfiguration.User]? {
    object.keys.sorted().compactMap { email in
      if !LocalStackConfiguration.isEmail(email) { object.problem(email, "this is not an e-mail address") }
      return object.secret(email, form: .text).map { LocalStackConfiguration.User(email: email, password: $0.value) }
    }
  }
}
