import HTTPClient
import HostKit
import KizunaSync

/// Calls the two server functions so that nothing is changed.
///
/// `pull` is asked for one row of each table by itself, so that an answer tells which table it is about, and without a
/// client id, so that the server notes nobody's progress. `push` gets a batch without mutations: there is nothing to decide
/// and nothing to record (Kizuna wire contract §4, §5).
struct FunctionProbe: Sendable {
  private let configuration: GatewayConfiguration
  private let http: ObservedHTTP
  private let remote: Remote
  private let token: String
  private let subject: String?

  /// - Parameter subject: the token's user, whose rows are asked for.
  init(_ configuration: GatewayConfiguration, http: any HTTPTransport, token: String, subject: String?) {
    self.configuration = configuration
    self.token = token
    self.subject = subject
    self.http = ObservedHTTP(http)
    let config = KizunaSyncRemoteConfig(
      url: configuration.url.http(), publishableKey: configuration.publishableKey.value)
    remote = Remote(config, http: self.http)
  }

  /// - Parameter cursor: how far the replica has come.
  func pulls(cursor: String) async -> [Finding] {
    var findings: [Finding] = []
    for (table, declaration) in configuration.tables.sorted(by: { $0.key < $1.key }) {
      guard let params = params(declaration.bucket) else {
        findings.append(.skipped(.pull, "the access token names no user, whose rows are to be read", for: table))
        continue
      }
      let request = PullRequest(
        buckets: [.init(table: table, params: params)], cursor: cursor, schemaVersion: configuration.schemaVersion,
        limit: 1)
      findings.append(await call(.pull, table: table, body: request.body()))
    }
    return findings
  }

  private func params(_ bucket: TableDeclaration.Bucket) -> [String: JSONValue]? {
    switch bucket {
    case .wholeTable: [:]
    case .owner(let column): subject.map { [column: .string($0)] }
    case .column(let column, let value): [column: value]
    }
  }

  func push() async -> Finding {
    let body: JSONValue = [
      "batch": ["atomic": false, "mutations": []], "last_mutation_id": nil,
      "schema_version": .int(configuration.schemaVersion),
    ]
    return await call(.push, table: nil, body: JSONWriter.data(body))
  }

  private func call(_ check: Finding.Check, table: String?, body: [UInt8]) async -> Finding {
    let request = remote.request(check.rawValue, body: body, token: token)
    let response = try? await http.send(request)
    guard let exchange = http.last(check.rawValue) else { return .skipped(check, "interrupted", for: table) }
    return FunctionVerdict.finding(
      check, table: table, exchange, body: response.flatMap { try? JSONValue(parsing: $0.body) })
  }
}
