import HTTPClient
import HostKit

/// An HTTP transport without a network: it answers from a script, or from a closure, and keeps every call.
///
/// ```swift
/// let http = ScriptedHTTP()
/// http.enqueue(.json(["rows": [], "tombstones": [], "cursor": "0", "has_more": false, "signal": nil]))
/// http.faults.failNext(2)                        // the first two calls fail, the third gets the answer
/// let held = http.faults.holdNext(path: "rpc/push")
/// await held.reached()                           // the push is in flight
/// held.release()
/// ```
public final class ScriptedHTTP: HTTPTransport {
  public typealias Handler = @Sendable (HTTPRequest) async throws -> HTTPResponse

  public let faults = TransportFaults()
  private let handler: Handler?
  private let state = Locked(State())

  private struct State {
    var answers: [HTTPResponse] = []
    var calls: [HTTPRequest] = []
  }

  /// - Parameter handler: answers a call that finds no queued answer. Without one, such a call fails.
  public init(_ handler: Handler? = nil) {
    self.handler = handler
  }

  /// Adds an answer for a later call; answers are used up in order.
  public func enqueue(_ response: HTTPResponse) {
    state.withLock { $0.answers.append(response) }
  }

  /// Every call so far, failed ones included.
  public var calls: [HTTPRequest] { state.withLock { $0.calls } }

  /// Forgets the calls so far.
  public func forgetCalls() {
    state.withLock { $0.calls = [] }
  }

  /// Answers that no call has used yet.
  public var pendingAnswers: Int { state.withLock { $0.answers.count } }

  public func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    try Task.checkCancellation()
    state.withLock { $0.calls.append(request) }
    return try await faults.serve(request) { request in
      let queued = state.withLock { state in state.answers.isEmpty ? nil : state.answers.removeFirst() }
      if let queued { return queued }
      guard let handler else { throw HTTPError(.other, "the script has no answer for a call of \(request.path)") }
      return try await handler(request)
    }
  }
}
