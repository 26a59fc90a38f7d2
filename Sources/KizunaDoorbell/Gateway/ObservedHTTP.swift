import HTTPClient
import HostKit

/// Passes requests on and remembers how the last call of a server function went: when it was sent and answered, and
/// whether the server could be reached and accepted the credentials.
///
/// The client's errors carry the catalogue's codes, which put a missing network and a refused token into one class;
/// whoever reports to a person needs to know which of the two it was.
package final class ObservedHTTP: HTTPTransport {
  package enum Outcome: Sendable, Hashable {
    /// `code`: the SQLSTATE or PostgREST code of an answer that is an error. The text beside it is not kept, because a
    /// database's messages quote values.
    case answered(status: Int, code: String?)
    case failed(HTTPError)
  }

  /// Why a server refused the credentials of a call.
  package enum Refusal: Sendable, Hashable {
    case key, expired
    /// The access token for another reason, or no reason was given.
    case token
  }

  /// One call of `pull` or `push`. Times are `CLOCK_MONOTONIC` nanoseconds, 0 where unknown.
  package struct Exchange: Sendable, Hashable {
    package var function: String
    package var sentAt: UInt64
    package var receivedAt: UInt64
    package var outcome: Outcome
    /// Set when the answer is about the credentials and not about what was asked.
    package var refusal: Refusal?
  }

  private let inner: any HTTPTransport
  private let exchanges = Locked<[String: Exchange]>([:])
  private let latest = Locked<Exchange?>(nil)
  private let accepted = Locked(false)

  package init(_ inner: any HTTPTransport) {
    self.inner = inner
  }

  /// The last call of `pull` or of `push`.
  package func last(_ function: String) -> Exchange? {
    exchanges.withLock { $0[function] }
  }

  /// The last call of either since `forget`.
  package var last: Exchange? { latest.withLock { $0 } }

  /// Whether the server has answered any call as asked, and so has taken the credentials.
  package var wasAccepted: Bool { accepted.withLock { $0 } }

  /// A run begins: what the last one met says nothing about it.
  package func forget() {
    latest.withLock { $0 = nil }
  }

  package nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let function = Self.function(of: request.url) else { return try await inner.send(request) }
    do {
      let response = try await inner.send(request)
      let body = Self.body(of: response)
      let code = Self.code(body)
      if (200..<300).contains(response.status) { accepted.withLock { $0 = true } }
      note(
        Exchange(
          function: function, sentAt: response.requestSentAt, receivedAt: response.responseReceivedAt,
          outcome: .answered(status: response.status, code: code),
          refusal: Self.refusal(response.status, code: code, message: body?["message"]?.stringValue)))
      return response
    } catch {
      if let error = error as? HTTPError {
        note(Exchange(function: function, sentAt: 0, receivedAt: 0, outcome: .failed(error)))
      }
      throw error
    }
  }

  private func note(_ exchange: Exchange) {
    exchanges.withLock { $0[exchange.function] = exchange }
    latest.withLock { $0 = exchange }
  }

  private static func body(of response: HTTPResponse) -> JSONValue? {
    guard !(200..<300).contains(response.status), response.body.count < 65_536 else { return nil }
    return try? JSONValue(parsing: response.body)
  }

  /// PostgREST checks the token before anything else (codes PGRST30x, 303 for one that has expired) and answers 401; what
  /// stands before it checks the key and answers 401 or 403 without a code. A 403 with an SQLSTATE is about rights.
  private static func refusal(_ status: Int, code: String?, message: String?) -> Refusal? {
    guard status == 401 || status == 403 && (code == nil || code?.hasPrefix("PGRST30") == true) else { return nil }
    let message = message?.lowercased() ?? ""
    if code == nil, message.contains("api key") || message.contains("apikey") { return .key }
    return code == "PGRST303" || message.contains("expired") ? .expired : .token
  }

  private static func code(_ body: JSONValue?) -> String? {
    guard let code = body?["code"]?.stringValue, code.utf8.count <= 16 else { return nil }
    return code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) } ? code : nil
  }

  /// The name after `/rest/v1/rpc/`.
  private static func function(of url: String) -> String? {
    guard let slash = url.utf8.lastIndex(of: UInt8(ascii: "/")), url[..<slash].hasSuffix("/rest/v1/rpc") else {
      return nil
    }
    return String(url[url.index(after: slash)...])
  }
}
