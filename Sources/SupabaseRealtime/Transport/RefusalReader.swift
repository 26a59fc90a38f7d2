import HTTPClient
import HostKit

/// Asks once more over plain HTTP why an upgrade was refused, where only the text tells (Realtime wire contract §1:
/// 401 and 403) and libwebsockets had not yet received it.
struct RefusalReader: Sendable {
  let http: (any HTTPTransport)?
  var limits = LibwebsocketsTransport.Limits()

  func isNeeded(status: Int, body: String?) -> Bool {
    http != nil && (status == 401 || status == 403) && body == nil
  }

  /// - Returns: the body, when the same status came again.
  func body(of request: RealtimeTransportRequest, status: Int) async -> String? {
    guard let http, request.url.lowercased().hasPrefix("ws") else { return nil }
    var headers = request.headers.map { HTTPHeader($0.name, $0.value) }
    headers += [
      HTTPHeader("Connection", "Upgrade"), HTTPHeader("Upgrade", "websocket"),
      HTTPHeader("Sec-WebSocket-Version", "13"), HTTPHeader("Sec-WebSocket-Key", "a2l6dW5hLWRvb3JiZWxsLg=="),
    ]
    let answer = try? await http.send(
      HTTPRequest(
        method: "GET", url: "http" + request.url.dropFirst(2), headers: headers, timeout: limits.refusalTextTimeout,
        connectTimeout: limits.refusalTextTimeout, maximumResponseBytes: limits.refusalTextBytes))
    guard let answer, answer.status == status, !answer.body.isEmpty else { return nil }
    return String(decoding: answer.body, as: UTF8.self)
  }
}
