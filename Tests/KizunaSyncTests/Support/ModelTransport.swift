import HTTPClient
import HostKit
import KizunaSyncTestSupport
import SyncServer

/// The server model as a value behind a transport, so that it can be looked at and put back at any moment.
final class ModelTransport: HTTPTransport {
  let server: Locked<SyncServerState>
  /// Called before the server sees a request; may throw instead of it.
  let beforeRequest = Locked<(@Sendable (HTTPRequest) throws -> Void)?>(nil)
  /// Called after the server has answered and before the client learns of it.
  let afterAnswer = Locked<(@Sendable () -> Void)?>(nil)
  /// The requests so far.
  let bodies = Locked<[(function: String, body: JSONValue)]>([])
  /// Of every answer.
  let headers = Locked<[HTTPHeader]>([])
  private let caller: Caller

  init(_ server: SyncServerState, caller: Caller = .user(owner)) {
    self.server = Locked(server)
    self.caller = caller
  }

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let body = request.json else { throw HTTPError(.other, "no body") }
    try beforeRequest.withLock { $0 }?(request)
    let function = request.path.hasSuffix("push") ? "push" : "pull"
    bodies.withLock { $0.append((function, body)) }
    let answer = server.withLock { server in
      function == "push" ? server.push(body, caller: caller, now: 0) : server.pull(body, caller: caller)
    }
    afterAnswer.withLock { $0 }?()
    return .json(answer.body, status: answer.status, headers: headers.withLock { $0 })
  }

  /// The mutations that were sent so far.
  var mutations: [JSONValue] {
    bodies.withLock { $0 }.flatMap { $0.body["batch"]?["mutations"]?.arrayValue ?? [] }
  }
}
