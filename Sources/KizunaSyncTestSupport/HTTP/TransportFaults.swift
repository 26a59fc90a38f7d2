import HTTPClient
import HostKit

/// Faults queued for the next calls of a transport. Each call takes the first fault that concerns it; without one it is
/// served.
public final class TransportFaults: Sendable {
  public enum Failure: Sendable {
    /// The request never arrives: the connection is lost.
    case connectionLost
    /// The transport fails with this error.
    case error(HTTPError)
    /// The server answers this and does nothing.
    case answer(HTTPResponse)

    /// An error a client may not retry: PostgREST's answer to a malformed argument.
    public static let permanent = Failure.postgREST("22023", status: 400)

    /// An answer in PostgREST's error shape.
    public static func postgREST(_ code: String, status: Int, message: String = "scripted failure") -> Failure {
      let body: JSONValue = ["code": .string(code), "message": .string(message), "details": nil, "hint": nil]
      return .answer(.json(body, status: status))
    }
  }

  /// Where a held call waits.
  public enum HoldPoint: Sendable {
    /// The request was sent, the server has not seen it.
    case beforeServer
    /// The server has answered, the client does not have the answer.
    case beforeAnswer
  }

  enum Fault: Sendable {
    case fail(Failure)
    case dropAnswer
    case hold(HeldCall, HoldPoint)
  }

  private let queue = Locked<[(suffix: String?, fault: Fault)]>([])

  public init() {}

  /// Fails the next `count` calls.
  ///
  /// - Parameter path: only calls whose path ends so (`rpc/pull`); nil concerns every call.
  public func failNext(_ count: Int = 1, with failure: Failure = .connectionLost, path: String? = nil) {
    for _ in 0..<count { add(.fail(failure), path) }
  }

  /// Lets the server process the next `count` calls and loses their answers.
  public func dropNextAnswers(_ count: Int = 1, path: String? = nil) {
    for _ in 0..<count { add(.dropAnswer, path) }
  }

  /// Keeps the next call in flight until it is released or its task is cancelled.
  public func holdNext(_ point: HoldPoint = .beforeServer, path: String? = nil) -> HeldCall {
    let held = HeldCall()
    add(.hold(held, point), path)
    return held
  }

  /// Forgets the faults that no call has taken yet.
  public func clear() {
    queue.withLock { $0 = [] }
  }

  /// Faults that no call has taken yet.
  public var pendingCount: Int { queue.withLock { $0.count } }

  private func add(_ fault: Fault, _ path: String?) {
    queue.withLock { $0.append((path, fault)) }
  }

  /// Serves a request under the next fault that concerns it.
  func serve(_ request: HTTPRequest, _ body: (HTTPRequest) async throws -> HTTPResponse) async throws -> HTTPResponse {
    switch take(request) {
    case nil: return try await body(request)
    case .fail(.connectionLost): throw HTTPError(.connectionLost, "scripted: the connection was lost")
    case .fail(.error(let error)): throw error
    case .fail(.answer(let response)): return response
    case .dropAnswer:
      _ = try await body(request)
      throw HTTPError(.connectionLost, "scripted: the answer was lost")
    case .hold(let held, .beforeServer):
      try await held.wait()
      return try await body(request)
    case .hold(let held, .beforeAnswer):
      let response = try await body(request)
      try await held.wait()
      return response
    }
  }

  private func take(_ request: HTTPRequest) -> Fault? {
    let path = request.path
    return queue.withLock { queue in
      queue.firstIndex { $0.suffix.map(path.hasSuffix) ?? true }.map { queue.remove(at: $0).fault }
    }
  }
}

/// A call kept in flight.
public final class HeldCall: Sendable {
  private struct State {
    var reached = false
    var released = false
    var cancelled = false
    var call: CheckedContinuation<Void, any Error>?
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  /// Returns once a call is being held.
  public func reached() async {
    await withCheckedContinuation { continuation in
      let already = state.withLock { state -> Bool in
        if !state.reached { state.watchers.append(continuation) }
        return state.reached
      }
      if already { continuation.resume() }
    }
  }

  public var isReached: Bool { state.withLock { $0.reached } }

  /// Lets the call go on. Idempotent; may come before the call.
  public func release() {
    let call = state.withLock { state -> CheckedContinuation<Void, any Error>? in
      state.released = true
      defer { state.call = nil }
      return state.call
    }
    call?.resume()
  }

  func wait() async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let (watchers, outcome) = state.withLock {
          state -> ([CheckedContinuation<Void, Never>], Result<Void, any Error>?) in
          state.reached = true
          defer { state.watchers = [] }
          if state.cancelled { return (state.watchers, .failure(CancellationError())) }
          if state.released { return (state.watchers, .success(())) }
          state.call = continuation
          return (state.watchers, nil)
        }
        for watcher in watchers { watcher.resume() }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      let call = state.withLock { state -> CheckedContinuation<Void, any Error>? in
        state.cancelled = true
        defer { state.call = nil }
        return state.call
      }
      call?.resume(throwing: CancellationError())
    }
  }
}
