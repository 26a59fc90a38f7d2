import PhoenixChannels

/// The WebSocket port: connect, receive, send, ping and close in one injected interface.
///
/// The real implementation is `LibwebsocketsTransport`; `ScriptedTransport` of the test support plays scripts.
public protocol RealtimeTransport: AnyObject, Sendable {
  /// All events are delivered on this executor, and the owner of the connections runs on it, so that a received frame
  /// reaches its owner without changing threads.
  var executor: any SerialExecutor { get }

  /// Starts connecting and returns at once. Called on `executor`; events come later, never from inside this call.
  ///
  /// Every connection delivers exactly one final event: `.refused`, `.failed` or `.closed`. Nothing follows it.
  func connect(
    _ request: RealtimeTransportRequest, onEvent: @escaping @Sendable (RealtimeTransportEvent) -> Void
  ) -> any RealtimeTransportConnection
}

/// One WebSocket, from the attempt to its end. All calls are made on the transport's executor.
public protocol RealtimeTransportConnection: AnyObject, Sendable {
  /// Queues one message. A message queued before the close is requested is sent before the close frame.
  func send(_ message: RealtimeTransportMessage)
  /// Sends a WebSocket ping.
  func ping()
  /// Ends the connection. Before it is open the attempt is abandoned; a peer that does not answer the close is cut off
  /// after the request's close deadline. The final event still comes.
  func close(code: UInt16, reason: String)
}

public struct RealtimeTransportRequest: Sendable {
  /// `ws://` or `wss://`, query included. Contains the key: never log it.
  public var url: String
  /// Extra request headers.
  public var headers: [(name: String, value: String)]
  /// Nanoseconds from the start until the upgrade is answered.
  public var handshakeTimeout: UInt64
  /// Nanoseconds a requested close may take before the connection is cut.
  public var closeTimeout: UInt64
  /// Nanoseconds a queued message may wait for the kernel to take it.
  public var writeTimeout: UInt64
  /// A longer inbound message is dropped and reported as `.messageTooLarge`.
  public var maximumMessageBytes: Int
  /// A message that goes on past so many bytes ends the connection with `.failed(.endlessMessage)`; the peer gets close
  /// code 1009. Never less than `maximumMessageBytes`. A Realtime server takes no frame over 5,000,000 bytes and
  /// broadcasts no payload over 3,000 kB, so it sends nothing that long.
  public var endlessMessageBytes = 5_000_000

  public init(
    url: String, headers: [(name: String, value: String)] = [], handshakeTimeout: UInt64 = 15_000_000_000,
    closeTimeout: UInt64 = 1_000_000_000, writeTimeout: UInt64 = 10_000_000_000, maximumMessageBytes: Int = 1 << 20
  ) {
    self.url = url
    self.headers = headers
    self.handshakeTimeout = handshakeTimeout
    self.closeTimeout = closeTimeout
    self.writeTimeout = writeTimeout
    self.maximumMessageBytes = maximumMessageBytes
  }
}

/// One whole message: `.text(String)` or `.binary([UInt8])`.
public typealias RealtimeTransportMessage = PhoenixMessage

public enum RealtimeTransportEvent: Sendable, Hashable {
  /// The upgrade was accepted.
  case opened
  /// One whole message. `receivedAt` is `CLOCK_MONOTONIC` nanoseconds of its last byte, 0 where unknown.
  case message(RealtimeTransportMessage, receivedAt: UInt64)
  /// A message over the limit was dropped; the connection goes on.
  case messageTooLarge(bytes: Int)
  case pong
  /// The upgrade was answered with something other than 101. Final.
  case refused(status: Int, retryAfterSeconds: Int?, body: String?)
  /// The attempt or the connection ended without a close frame. Final.
  case failed(RealtimeTransportFailure)
  /// A close frame came, or the close we asked for is done. Final. The code is nil where the frame had none, and where
  /// the transport cannot tell it.
  case closed(code: UInt16?, reason: String)
}

/// Why a connection ended without a close frame. The message names host and port at most.
public struct RealtimeTransportFailure: Error, Sendable, Hashable {
  public enum Kind: String, Sendable {
    case invalidURL, unresolved, unreachable, timeout, tls, proxy, connectionLost, endlessMessage, other
  }

  public let kind: Kind
  public let message: String

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }
}
