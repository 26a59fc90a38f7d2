import HTTPClient
import HostKit

/// The WebSocket transport over libwebsockets: `ws://` and `wss://`, one thread for all connections of the process.
///
/// Names are resolved on threads of their own; where a host has several addresses, the first to accept a connection is
/// used. No compression and no subprotocol is offered. Proxies are only used as the rule given says; they must be plain
/// HTTP proxies that tunnel with `CONNECT`, and are asked on threads of their own as well.
public final class LibwebsocketsTransport: RealtimeTransport {
  /// Where trust in a `wss://` server comes from. TLS 1.2 is the oldest version accepted; the name is always checked.
  public enum TrustRoots: Sendable, Hashable {
    /// The certificate authorities of the operating system.
    case system
    /// Those, and the ones in a PEM file.
    case systemAnd(file: String)
  }

  private let environment: LwsClientConnection.Environment

  /// - Parameters:
  ///   - trustRoots: for `wss://`.
  ///   - proxy: which connections go through a proxy.
  ///   - http: fetches the text of a 401 or 403 that libwebsockets did not pass on; nil reports such refusals without
  ///     their text.
  ///   - clock: for the deadlines.
  public init(
    trustRoots: TrustRoots = .system, proxy: ProxyRule = .direct, http: (any HTTPTransport)? = nil,
    clock: any HostClock = SystemClock.shared
  ) {
    environment = LwsClientConnection.Environment(
      loop: .shared, trustRoots: trustRoots, proxy: proxy, clock: clock, refusalReader: RefusalReader(http: http))
  }

  public var executor: any SerialExecutor { environment.loop }

  public func connect(
    _ request: RealtimeTransportRequest, onEvent: @escaping @Sendable (RealtimeTransportEvent) -> Void
  ) -> any RealtimeTransportConnection {
    environment.loop.checkIsolated()
    let connection = LwsClientConnection(environment, request: request, onEvent: onEvent)
    // Never from inside this call, nor from inside a callback of libwebsockets that led here.
    environment.loop.run { connection.begin() }
    return connection
  }
}
