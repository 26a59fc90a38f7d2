import HTTPClient
import HostKit
import KizunaSyncTestSupport

/// Answers one call with what the current step of a transcript has ready, and keeps what was sent.
final class StepTransport: HTTPTransport {
  typealias Reply = @Sendable (Transcript.Function, JSONValue) -> JSONValue?

  private struct State {
    var reply: Reply?
    var sent: (function: Transcript.Function, body: JSONValue)?
    var count = 0
  }

  private let state = Locked(State())

  /// - Parameter reply: the answer; nil loses the connection.
  func prepare(_ reply: @escaping Reply) {
    state.withLock { $0 = State(reply: reply) }
  }

  var sent: JSONValue? { state.withLock { $0.sent?.body } }
  var count: Int { state.withLock { $0.count } }

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let function = Transcript.Function(rawValue: String(request.path.split(separator: "/").last ?? "")),
      let body = request.json
    else { throw HTTPError(.other, "not a call of this protocol: \(request.path)") }
    let reply = state.withLock { state -> Reply? in
      state.sent = (function, body)
      state.count += 1
      return state.reply
    }
    guard let answer = reply?(function, body) else { throw HTTPError(.connectionLost, "scripted") }
    return .json(answer)
  }
}
