import HTTPClient
import HostKit

/// The least that the same ring could cost: half a WebSocket round trip, the same pull over a warm connection, the same
/// row in one transaction. Each is written directly on the C library and runs on a thread that does nothing else.
actor BenchFloor {
  struct Sample: Sendable {
    var webSocket: UInt64
    var request: UInt64
    var transaction: UInt64
  }

  private let thread = SerialThread(name: "kizuna-floor")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  private let database: String
  private let webSocketURL: ServerURL
  private let key: String
  private var webSocket: BareWebSocket?
  private var http: BareHTTP?
  private var sqlite: BareSQLite?

  /// - Parameter database: a path where there is no file yet.
  init(database: String, webSocketURL: ServerURL, key: String) {
    self.database = database
    self.webSocketURL = webSocketURL
    self.key = key
  }

  /// One sample of each part.
  /// - Parameter pull: the request the gateway just sent.
  func sample(pull: HTTPRequest) throws -> Sample {
    let webSocket = try self.webSocket ?? connect()
    self.webSocket = webSocket
    let http =
      try self.http
      ?? BareHTTP(url: pull.url, headers: pull.headers.map { "\($0.name): \($0.value)" })
    self.http = http
    let sqlite = try self.sqlite ?? BareSQLite(path: database, synchronous: 1)
    self.sqlite = sqlite

    let half = try webSocket.roundTrip() / 2
    let (answer, request) = try http.post(pull.body ?? [])
    let page = try JSONValue(parsing: answer)
    let row = page["rows"]?[0]
    let transaction = try sqlite.transaction(
      id: row?["pk"]?.stringValue ?? "", owner: row?["row"]?["owner_id"]?.stringValue ?? "",
      title: row?["row"]?["title"]?.stringValue ?? "", n: Int64(row?["row"]?["n"]?.intValue ?? 0),
      cursor: page["cursor"]?.stringValue ?? "")
    return Sample(webSocket: half, request: request, transaction: transaction)
  }

  private func connect() throws -> BareWebSocket {
    let separator = webSocketURL.query == nil ? "?" : "&"
    let query = webSocketURL.query.map { "?\($0)" } ?? ""
    return try BareWebSocket(
      host: webSocketURL.host, port: webSocketURL.port,
      path: "\(webSocketURL.path)\(query)\(separator)apikey=\(PercentCoding.encode(key))&vsn=1.0.0",
      isSecure: webSocketURL.isSecure)
  }

  /// Closes everything and ends the thread.
  func close() {
    webSocket = nil
    http = nil
    sqlite = nil
    thread.stop()
  }
}
