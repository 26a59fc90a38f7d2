import HTTPClient
import HostKit
import KizunaSync
import SupabaseRealtime

/// What a gateway reaches the world with. Tests replace them.
public struct GatewayParts: Sendable {
  public var http: any HTTPTransport
  public var realtime: any RealtimeTransport
  public var clock: any HostClock
  /// Says whether the network path is worth trying; nil takes the host's routing table.
  public var pathMonitor: (@Sendable () -> any KizunaSyncPathMonitor)?
  /// Says when the calendar was set or the host woke; nil asks the kernel.
  public var resumeSource: (@Sendable () -> any KizunaSyncForegroundSource & Sendable)?
  /// The machine slept, so connections that look alive may be dead: later requests make new ones.
  public var dropConnections: @Sendable () -> Void
  /// Ends what was made for this gateway alone.
  public var shutdown: @Sendable () async -> Void

  public init(
    http: any HTTPTransport, realtime: any RealtimeTransport, clock: any HostClock = SystemClock.shared,
    pathMonitor: (@Sendable () -> any KizunaSyncPathMonitor)? = nil,
    resumeSource: (@Sendable () -> any KizunaSyncForegroundSource & Sendable)? = nil,
    dropConnections: @escaping @Sendable () -> Void = {},
    shutdown: @escaping @Sendable () async -> Void = {}
  ) {
    self.http = http
    self.realtime = realtime
    self.clock = clock
    self.pathMonitor = pathMonitor
    self.resumeSource = resumeSource
    self.dropConnections = dropConnections
    self.shutdown = shutdown
  }

  /// libcurl, libwebsockets and the system's clock; proxies as the environment says.
  ///
  /// - Parameters:
  ///   - authorityFile: certificate authorities that are trusted besides the system's, for both; nil takes those of the
  ///     environment's `SSL_CERT_FILE`, which OpenSSL honours and libcurl does not.
  ///   - maximumIdle: nanoseconds after which an unused HTTP connection is not trusted any more. A process that was
  ///     stopped notices nothing else of the time that has passed.
  public static func live(authorityFile: String? = nil, maximumIdle: UInt64 = .seconds(45)) -> GatewayParts {
    let environment = ProcessEnvironment.variables
    let proxy = ProxyRule(environment: environment)
    let authorityFile = authorityFile ?? environment["SSL_CERT_FILE"].flatMap { $0.isEmpty ? nil : $0 }
    let http = CurlHTTPClient(
      CurlHTTPClient.Settings(authorityFile: authorityFile, proxy: proxy, maximumIdle: maximumIdle))
    let roots = authorityFile.map { LibwebsocketsTransport.TrustRoots.systemAnd(file: $0) } ?? .system
    return GatewayParts(
      http: http, realtime: LibwebsocketsTransport(trustRoots: roots, proxy: proxy, http: http),
      dropConnections: { http.dropConnections() },
      shutdown: { await http.shutdown() })
  }
}
