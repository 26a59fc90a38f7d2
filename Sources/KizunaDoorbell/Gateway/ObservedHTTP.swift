import HTTPClient
import HostKit
import KizunaSync

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

  package typealias Refusal = ServerAnswer.Refusal

  /// One call of `pull` or `push`. Times are `CLOCK_MONOTONIC` nanoseconds, 0 where unknown.
  package struct Exchange: Sendable, Hashable {
    package var function: String
    package var sentAt: UInt64
    package var receivedAt: UInt64
    package var outcome: Outcome
    /// Set when the answer is about the credentials and not about what was asked.
    package var refusal: Refusal?
    /// A success that is no JSON: whoever answered is not the server.
    package var isForeign = false
    /// Of the request's body.
    package var requestBytes = Int.max
  }

  private let inner: any HTTPTransport
  private let exchanges = Locked<[String: Exchange]>([:])
  private let latest = Locked<Exchange?>(nil)
  private let accepted = Locked(false)
  private let dateListener = Locked<(@Sendable (Int64) -> Void)?>(nil)
  private let listener = Locked<(@Sendable (_ function: String, HTTPResponse) -> Void)?>(nil)

  package init(_ inner: any HTTPTransport) {
    self.inner = inner
  }

  /// Calls `body` with the server's clock, milliseconds since 1970, whenever an answer tells it.
  package func onServerDate(_ body: @escaping @Sendable (Int64) -> Void) { dateListener.withLock { $0 = body } }

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

  /// Calls `listener` with every answer to a call, before whoever asked gets it; must be short.
  package func onAnswer(_ listener: @escaping @Sendable (_ function: String, HTTPResponse) -> Void) {
    self.listener.withLock { $0 = listener }
  }

  package nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let function = Self.function(of: request.url) else { return try await inner.send(request) }
    do {
      let response = try await inner.send(request)
      if let date = response.serverDate { dateListener.withLock { $0 }?(date) }
      let answer = ServerAnswer(response)
      if (200..<300).contains(response.status), Self.beginsAsObject(response.body) { accepted.withLock { $0 = true } }
      note(
        Exchange(
          function: function, sentAt: response.requestSentAt, receivedAt: response.responseReceivedAt,
          outcome: .answered(status: answer.status, code: answer.code), refusal: answer.refusal,
          isForeign: (200..<300).contains(response.status) && !Self.beginsAsObject(response.body),
          requestBytes: request.body?.count ?? 0))
      listener.withLock { $0 }?(function, response)
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

  private static func beginsAsObject(_ body: [UInt8]) -> Bool {
    body.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "{")
  }

  /// The name after `/rest/v1/rpc/`.
  private static func function(of url: String) -> String? {
    guard let slash = url.utf8.lastIndex(of: UInt8(ascii: "/")), url[..<slash].hasSuffix("/rest/v1/rpc") else {
      return nil
    }
    return String(url[url.index(after: slash)...])
  }
}
