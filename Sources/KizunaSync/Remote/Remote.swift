import HTTPClient
import HostKit

/// The two server functions over HTTP (Kizuna wire contract §2).
package struct Remote: Sendable {
  let base: String
  let publishableKey: String
  let schema: String
  let http: any HTTPTransport

  package init(_ config: KizunaSyncRemoteConfig, http: any HTTPTransport) {
    var base = config.url
    while base.hasSuffix("/") { base.removeLast() }
    self.base = base
    publishableKey = config.publishableKey
    schema = config.schema ?? "kizunasync"
    self.http = http
  }

  /// Sends one request and returns the 2xx answer.
  /// - Parameters:
  ///   - tables: what the body is about, for the failure's sentence.
  ///   - keepsHead: a failure with an answer that is too large tells the row it begins with.
  /// - Throws: `RemoteFailure`, or `CancellationError`.
  func call(_ function: String, body: [UInt8], token: String, tables: [String] = [], keepsHead: Bool = false)
    async throws
    -> HTTPResponse
  {
    let response: HTTPResponse
    do {
      var request = request(function, body: body, token: token)
      request.keepsHead = keepsHead
      response = try await http.send(request)
    } catch let error as HTTPError {
      throw RemoteFailure.transport(error, function: function)
    }
    guard (200..<300).contains(response.status) else {
      throw RemoteFailure.answer(response, function: function, tables: tables)
    }
    return response
  }

  /// The request of one call, body included.
  package func request(_ function: String, body: [UInt8], token: String) -> HTTPRequest {
    var headers = [HTTPHeader("Authorization", "Bearer \(token)")]
    if !publishableKey.isEmpty { headers.append(HTTPHeader("apikey", publishableKey)) }
    headers += [
      HTTPHeader("Content-Type", "application/json"), HTTPHeader("Accept", "application/json"),
      HTTPHeader("Content-Profile", schema),
    ]
    return HTTPRequest(method: "POST", url: "\(base)/rest/v1/rpc/\(function)", headers: headers, body: body)
  }
}
