import HTTPClient
import HostKit

/// Keeps the last pull request, so that the floor can send the same bytes.
final class CapturingHTTP: HTTPTransport {
  private let inner: any HTTPTransport
  private let request = Locked<HTTPRequest?>(nil)

  init(_ inner: any HTTPTransport) {
    self.inner = inner
  }

  var lastPull: HTTPRequest? { request.withLock { $0 } }

  nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    if request.url.hasSuffix("/rest/v1/rpc/pull") { self.request.withLock { $0 = request } }
    return try await inner.send(request)
  }
}
