import HostKit

/// HTTP over libcurl: one thread and one connection pool for all requests of the client.
///
/// Connections are kept alive and reused; over TLS, HTTP/2 is used where the server offers it. Redirects are not followed,
/// cookies are not kept, certificates are always verified (TLS 1.2 or newer), plain `http` is refused unless the host is
/// near (`ServerURL.isNear`). An idle client wakes nobody up.
///
/// End it with `shutdown()`; a client that is let go without ends its thread too, failing what is pending.
public final class CurlHTTPClient: HTTPTransport {
  public struct Settings: Sendable {
    /// A PEM file with certificate authorities that are trusted besides the system's.
    public var authorityFile: String?
    public var proxy: ProxyRule
    public var userAgent: String
    /// Nanoseconds after which an unused connection is not used again.
    public var maximumIdle: UInt64
    /// Connections of all hosts together that are kept; less than `maximumConnectionsPerHost` makes bursts reconnect.
    public var maximumKeptConnections: Int
    /// Further requests to the same host wait for a free connection (or share one under HTTP/2).
    public var maximumConnectionsPerHost: Int

    public init(
      authorityFile: String? = nil, proxy: ProxyRule = .direct, userAgent: String = "kizuna-doorbell",
      maximumIdle: UInt64 = .seconds(600), maximumKeptConnections: Int = 16, maximumConnectionsPerHost: Int = 16
    ) {
      self.authorityFile = authorityFile
      self.proxy = proxy
      self.userAgent = userAgent
      self.maximumIdle = maximumIdle
      self.maximumKeptConnections = maximumKeptConnections
      self.maximumConnectionsPerHost = maximumConnectionsPerHost
    }
  }

  static let shutDownError = HTTPError(.other, "the HTTP client was shut down")
  static let droppedError = HTTPError(.connectionLost, "the connections were dropped while the request was under way")

  private let loop: CurlLoop
  private let routes: RouteTable

  public init(_ settings: Settings = Settings()) {
    loop = CurlLoop(settings)
    routes = RouteTable(settings.proxy)
  }

  deinit {
    loop.stop()
  }

  /// Sends one request and returns the whole answer, whatever its status. Cancelling the task ends the transfer.
  ///
  /// A request that finds its reused connection closed before any byte of an answer came is sent once more on a new
  /// connection; requests must therefore be safe to repeat.
  /// - Throws: `HTTPError`, or `CancellationError`.
  public nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let route = try routes.route(for: request.url)
    try Task.checkCancellation()
    return try await exchange(CurlTransfer(request, route: route))
  }

  /// Hands the transfer to the curl thread and waits, on the caller's executor throughout.
  private func exchange(
    _ transfer: CurlTransfer, isolation: isolated (any Actor)? = #isolation
  ) async throws -> HTTPResponse {
    try await withTaskCancellationHandler {
      // Only a closure that captures its isolation keeps it; any other would be run on the global executor.
      _ = isolation
      return try await withCheckedThrowingContinuation { continuation in
        transfer.wait(continuation)
        if !loop.start(transfer) { transfer.finish(.failure(Self.shutDownError)) }
      }
    } onCancel: {
      loop.cancel(transfer)
    }
  }

  /// Closes every connection, for when the network changed or the machine slept: a connection may look alive and be
  /// dead, and a request on it would wait for its deadline. Requests under way fail with `.connectionLost`; whether the
  /// server took them is unknown, as with any lost connection.
  public func dropConnections() {
    loop.dropConnections()
  }

  /// Fails what is pending with an `HTTPError`, closes all connections and returns when the thread has ended. Later
  /// requests fail. Idempotent.
  public func shutdown() async {
    loop.stop()
    await loop.waitUntilEnded()
  }
}
