import HTTPClient
import HostKit

/// Keeps when each request was handed over and answered, and what was asked first.
final class RequestMeter: HTTPTransport {
  struct Exchange: Sendable {
    var function: String
    /// `CLOCK_MONOTONIC` nanoseconds.
    var start: UInt64
    var end: UInt64
  }

  private struct State: Sendable {
    var exchanges: [Exchange] = []
    var firstPull: HTTPRequest?
  }

  private let inner: any HTTPTransport
  private let state = Locked(State())

  init(_ inner: any HTTPTransport) {
    self.inner = inner
  }

  var exchanges: [Exchange] { state.withLock { $0.exchanges } }
  var firstPull: HTTPRequest? { state.withLock { $0.firstPull } }

  nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let function = request.url.split(separator: "/").last.map(String.init) ?? ""
    let start = SystemClock.monotonic
    let response = try await inner.send(request)
    let end = SystemClock.monotonic
    state.withLock { state in
      state.exchanges.append(Exchange(function: function, start: start, end: end))
      if function == "pull", state.firstPull == nil { state.firstPull = request }
    }
    return response
  }
}
