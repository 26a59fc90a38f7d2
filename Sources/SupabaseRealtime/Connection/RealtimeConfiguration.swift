import HostKit
import PhoenixChannels

/// Where and how a `RealtimeConnection` connects.
public struct RealtimeConfiguration: Sendable {
  public enum Endpoint: Sendable, Hashable {
    /// A project's address; the WebSocket is at `/realtime/v1/websocket` below it.
    case project(ServerURL)
    /// The WebSocket's own address, for servers without a gateway in front.
    case webSocket(ServerURL)

    var url: ServerURL {
      switch self {
      case .project(let url), .webSocket(let url): url
      }
    }
  }

  public var endpoint: Endpoint
  /// The publishable (anonymous) key, which opens the connection. Access tokens go into the joins.
  public var apiKey: String
  public var version: PhoenixVersion
  /// Timers, budgets, and the kind of channels. `usesCredentials` is set by the connection itself.
  public var policy: ConnectionPolicy
  /// A longer inbound message is dropped and rings all topics; one that goes on past 5,000,000 bytes ends the connection,
  /// which is then made again by the usual rules. Bytes.
  public var maximumMessageBytes: Int
  /// Nanoseconds. A timer that fires later than this tells that the host or this process slept: the peer is probed.
  public var resumeThreshold: UInt64 = .seconds(30)
  /// An access token is not joined with in its last nanoseconds, so many, when another can be had.
  public var renewalMargin: UInt64 = .seconds(60)
  /// Changes of the state that a reader of `statusUpdates` may be behind before it misses the oldest.
  public var statusBacklog = 1_000
  /// Called when such a timer fired, on the connection's executor; must be short. For whoever else has connections that may
  /// be dead by now.
  public var onResume: (@Sendable () -> Void)?

  public init(
    endpoint: Endpoint, apiKey: String, version: PhoenixVersion = .v2, policy: ConnectionPolicy = ConnectionPolicy(),
    maximumMessageBytes: Int = 1 << 20
  ) {
    self.endpoint = endpoint
    self.apiKey = apiKey
    self.version = version
    self.policy = policy
    self.maximumMessageBytes = maximumMessageBytes
  }

  public init(url: ServerURL, apiKey: String, version: PhoenixVersion = .v2) {
    self.init(endpoint: .project(url), apiKey: apiKey, version: version)
  }

  /// libwebsockets cuts longer request lines without a word, so a key that does not fit goes into a header, which the
  /// server prefers anyway (Realtime wire contract §1).
  static let maximumTargetBytes = 1_900

  /// The request of one attempt. Contains the key.
  func request() -> RealtimeTransportRequest {
    let address =
      switch endpoint {
      case .project(let url): url.webSocket("/realtime/v1/websocket")
      case .webSocket(let url): url.webSocket()
      }
    let separator = address.contains("?") ? "&" : "?"
    let version = "vsn=\(version.rawValue)"
    var request = RealtimeTransportRequest(
      url: "\(address)\(separator)apikey=\(PercentCoding.encode(apiKey))&\(version)",
      handshakeTimeout: policy.handshakeDeadline - min(policy.handshakeMargin, policy.handshakeDeadline / 2),
      closeTimeout: policy.closeDeadline * 2 / 3,
      maximumMessageBytes: maximumMessageBytes)
    let authority = endpoint.url.isSecure ? "wss://\(endpoint.url.authority)" : "ws://\(endpoint.url.authority)"
    if request.url.utf8.count - authority.utf8.count > Self.maximumTargetBytes {
      request.url = "\(address)\(separator)\(version)"
      request.headers = [(name: "x-api-key", value: apiKey)]
    }
    return request
  }
}

extension RealtimeConfiguration: CustomStringConvertible, CustomDebugStringConvertible {
  /// Host and port, never the key.
  public var description: String { "Realtime at \(endpoint.url.label), version \(version.rawValue)" }
  public var debugDescription: String { description }
}
