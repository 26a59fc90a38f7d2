/// The HTTP port. The real implementation is `CurlHTTPClient`; tests script one.
public protocol HTTPTransport: Sendable {
  /// Sends one request and returns the whole answer, whatever its status.
  ///
  /// Cancelling the task ends the transfer. Redirects are not followed. Runs on the caller's executor: a change of
  /// threads on the way there and back would cost more than the rest of a request to a near server.
  /// - Throws: `HTTPError`, or `CancellationError` when the task was cancelled.
  nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse
}

public struct HTTPRequest: Sendable {
  public var method: String
  public var url: String
  /// Sent in this order, names as given.
  public var headers: [HTTPHeader]
  public var body: [UInt8]?
  /// Nanoseconds for the whole exchange.
  public var timeout: UInt64
  /// Nanoseconds until the connection stands, name resolution and TLS included.
  public var connectTimeout: UInt64
  /// A longer answer is cut off and fails with `.tooLarge`.
  public var maximumResponseBytes: Int
  /// An answer that is too long is read far enough to tell what it begins with, and the error has that as its `head`.
  package var keepsHead = false

  public init(
    method: String, url: String, headers: [HTTPHeader] = [], body: [UInt8]? = nil, timeout: UInt64 = 30_000_000_000,
    connectTimeout: UInt64 = 10_000_000_000, maximumResponseBytes: Int = 64 << 20
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.timeout = timeout
    self.connectTimeout = connectTimeout
    self.maximumResponseBytes = maximumResponseBytes
  }
}

public struct HTTPHeader: Sendable, Hashable {
  public var name: String
  public var value: String

  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

public struct HTTPResponse: Sendable {
  public var status: Int
  public var headers: [HTTPHeader]
  public var body: [UInt8]
  /// `CLOCK_MONOTONIC` nanoseconds when the request was handed to the system (of a body that fits no socket buffer the
  /// first part), and when the last byte of the answer came; 0 where the transport does not know.
  public var requestSentAt: UInt64
  public var responseReceivedAt: UInt64
  /// The numeric address the answer came from (the proxy's, behind a proxy); nil where the transport does not know.
  public var peerAddress: String?

  public init(
    status: Int, headers: [HTTPHeader] = [], body: [UInt8] = [], requestSentAt: UInt64 = 0,
    responseReceivedAt: UInt64 = 0, peerAddress: String? = nil
  ) {
    self.status = status
    self.headers = headers
    self.body = body
    self.requestSentAt = requestSentAt
    self.responseReceivedAt = responseReceivedAt
    self.peerAddress = peerAddress
  }

  /// The first header of that name, compared without case.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}

/// Why no answer came. The message names host and port at most, never the path, the query or a header.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public enum Kind: String, Sendable {
    case invalidURL, unresolved, unreachable, timeout, tls, proxy, tooLarge, connectionLost, other
  }

  public let kind: Kind
  public let message: String
  /// How an answer that is too long begins, if that was asked for. Never shown: it may hold rows.
  package let head: [UInt8]
  /// The time was up with the connection standing and something under way: something smaller may get through in it. A
  /// server that says nothing at all is not slow.
  package let isTooSlow: Bool

  public init(_ kind: Kind, _ message: String) {
    self.init(kind, message, head: [])
  }

  package init(_ kind: Kind, _ message: String, head: [UInt8] = [], isTooSlow: Bool = false) {
    self.kind = kind
    self.message = message
    self.head = head
    self.isTooSlow = isTooSlow
  }

  public var description: String { message }
  public var customMirror: Mirror { Mirror(self, children: ["kind": kind, "message": message]) }
}
