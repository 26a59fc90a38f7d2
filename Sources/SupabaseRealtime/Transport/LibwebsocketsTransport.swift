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

  /// What bounds its connections, beside what each request says.
  public struct Limits: Sendable, Hashable {
    /// The next address of a host is tried when the one before has not answered for so long, nanoseconds.
    public var addressHeadStart: UInt64 = .milliseconds(250)
    /// How long the address that answered is used again without another look-up, nanoseconds.
    public var addressLifetime: UInt64 = .seconds(600)
    /// What may wait to be sent on one connection, bytes; more ends it.
    public var sendQueueBytes = 8 << 20
    /// What may wait to be sent on one connection, messages; more end it.
    public var sendQueueMessages = 4_096
    /// When the kernel asks a silent peer whether it is still there, and what it does then.
    public var keepAlive = KeepAlive()
    /// What fetching the text of a refusal may take, nanoseconds.
    public var refusalTextTimeout: UInt64 = .seconds(5)
    /// How much of such a text is kept, bytes.
    public var refusalTextBytes = 64 << 10

    public init() {}
  }

  /// TCP keep-alive, which finds out after about a minute that a peer is gone without a word.
  public struct KeepAlive: Sendable, Hashable {
    /// Silence before the first question, seconds.
    public var idleSeconds: Int32 = 30
    /// From one question to the next, seconds.
    public var intervalSeconds: Int32 = 10
    /// Unanswered questions after which the connection is over.
    public var probes: Int32 = 3

    public init() {}
  }

  private let environment: LwsClientConnection.Environment

  /// - Parameters:
  ///   - trustRoots: for `wss://`.
  ///   - proxy: which connections go through a proxy.
  ///   - http: fetches the text of a 401 or 403 that libwebsockets did not pass on; nil reports such refusals without
  ///     their text.
  ///   - limits: what bounds each connection.
  ///   - clock: for the deadlines.
  public convenience init(
    trustRoots: TrustRoots = .system, proxy: ProxyRule = .direct, http: (any HTTPTransport)? = nil,
    limits: Limits = Limits(), clock: any HostClock = SystemClock.shared
  ) {
    self.init(
      trustRoots: trustRoots, proxy: proxy, http: http, limits: limits, clock: clock,
      lookUp: { AddressResolver.addresses(of: $0) })
  }

  /// - Parameter lookUp: the addresses of a name; blocks, on a thread of its own.
  init(
    trustRoots: TrustRoots = .system, proxy: ProxyRule = .direct, http: (any HTTPTransport)? = nil,
    limits: Limits = Limits(), clock: any HostClock = SystemClock.shared, lookUp: @escaping AddressLookups.LookUp
  ) {
    environment = LwsClientConnection.Environment(
      loop: .shared, trustRoots: trustRoots, proxy: proxy, limits: limits, clock: clock,
      refusalReader: RefusalReader(http: http, limits: limits), lookUp: lookUp)
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
