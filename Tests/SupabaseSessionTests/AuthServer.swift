import HTTPClient
import HostKit

@testable import SupabaseSession

/// The sign-in endpoint as a test scripts it: each answer is a closure, requests are kept, and answers can be held back.
final class AuthServer: HTTPTransport {
  typealias Answer = @Sendable (HTTPRequest) throws -> HTTPResponse

  private struct State {
    var answers: [Answer] = []
    var requests: [HTTPRequest] = []
    var isHeld = false
    var held: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  func then(_ answer: @escaping Answer) { state.withLock { $0.answers.append(answer) } }

  var requests: [HTTPRequest] { state.withLock { $0.requests } }

  /// What each request asked for: `password a@b.c secret` or `refresh_token r1`.
  var asked: [String] {
    requests.map { request in
      let body = try? JSONValue(parsing: request.body ?? [])
      let grant = request.url.split(separator: "=").last.map(String.init) ?? ""
      let values = ["email", "password", "refresh_token"].compactMap { body?[$0]?.stringValue }
      return ([grant] + values).joined(separator: " ")
    }
  }

  /// Answers wait until `release`.
  func hold() { state.withLock { $0.isHeld = true } }

  func release() {
    let held = state.withLock { state in
      state.isHeld = false
      defer { state.held = [] }
      return state.held
    }
    for continuation in held { continuation.resume() }
  }

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    state.withLock { $0.requests.append(request) }
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state -> Bool in
        if state.isHeld { state.held.append(continuation) }
        return !state.isHeld
      }
      if isFree { continuation.resume() }
    }
    try Task.checkCancellation()
    let answer = state.withLock { $0.answers.isEmpty ? nil : $0.answers.removeFirst() }
    guard let answer else { throw HTTPError(.other, "the script has no answer for this request") }
    return try answer(request)
  }
}

extension AuthServer {
  static func token(_ name: String, issuedAt: Int64 = 1_767_225_600, lifetime: Int64? = 3600) -> String {
    var claims: [String: JSONValue] = ["sub": "user-1", "role": "authenticated", "name": .string(name)]
    if let lifetime {
      claims["iat"] = .int(issuedAt)
      claims["exp"] = .int(issuedAt + lifetime)
    }
    return "e30." + Base64.encode(JSONWriter.data(.object(claims)), .url) + ".c2ln"
  }

  static func grants(_ name: String, refresh: String?, lifetime: Int64? = 3600, headers: [HTTPHeader] = []) -> Answer {
    { _ in
      let body: JSONValue = [
        "access_token": .string(token(name, lifetime: lifetime)), "token_type": "bearer",
        "expires_in": .int(lifetime ?? 0), "refresh_token": .string(orNull: refresh), "user": ["id": "user-1"],
      ]
      return HTTPResponse(status: 200, headers: headers, body: JSONWriter.data(body))
    }
  }

  static func refuses(_ code: String, status: Int = 400) -> Answer {
    { _ in
      HTTPResponse(
        status: status, body: JSONWriter.data(["code": .int(status), "error_code": .string(code), "msg": "no"]))
    }
  }

  static func fails(_ status: Int, headers: [HTTPHeader] = []) -> Answer {
    { _ in HTTPResponse(status: status, headers: headers) }
  }

  static func throwing(_ kind: HTTPError.Kind) -> Answer {
    { _ in throw HTTPError(kind, "example.com:443 cannot be reached: no route to the host") }
  }
}
