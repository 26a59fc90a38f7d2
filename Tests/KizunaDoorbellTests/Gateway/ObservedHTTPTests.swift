import HTTPClient
import HostKit
import Testing

@testable import KizunaDoorbell

/// Answers by a closure.
private struct FakeHTTP: HTTPTransport {
  let answer: @Sendable (HTTPRequest) throws -> HTTPResponse
  func send(_ request: HTTPRequest) async throws -> HTTPResponse { try answer(request) }
}

@Suite struct ObservedHTTPTests {
  private func request(_ path: String) -> HTTPRequest {
    HTTPRequest(method: "POST", url: "https://example.com" + path)
  }

  @Test func remembersCallsOfTheServerFunctions() async throws {
    let http = ObservedHTTP(
      FakeHTTP { request in
        let isPush = request.url.hasSuffix("push")
        return HTTPResponse(
          status: isPush ? 401 : 200, body: Array(#"{"code":"PGRST301","message":"about 'a value'"}"#.utf8),
          requestSentAt: 5, responseReceivedAt: 9)
      })
    #expect(http.last == nil)
    _ = try await http.send(request("/auth/v1/token"))
    #expect(http.last == nil)
    _ = try await http.send(request("/base/rest/v1/rpc/pull"))
    #expect(http.last == .init(function: "pull", sentAt: 5, receivedAt: 9, outcome: .answered(status: 200, code: nil)))
    _ = try await http.send(request("/rest/v1/rpc/push"))
    #expect(http.last?.outcome == .answered(status: 401, code: "PGRST301"))
    #expect(http.last("pull")?.outcome == .answered(status: 200, code: nil))
  }

  @Test func remembersWhyNoAnswerCame() async {
    let error = HTTPError(.unreachable, "example.com:443 refused the connection")
    let http = ObservedHTTP(FakeHTTP { _ in throw error })
    await #expect(throws: error) { try await http.send(request("/rest/v1/rpc/pull")) }
    #expect(http.last?.outcome == .failed(error))
  }

  @Test func aCancelledCallSaysNothingAboutTheServer() async {
    let http = ObservedHTTP(FakeHTTP { _ in throw CancellationError() })
    await #expect(throws: CancellationError.self) { try await http.send(request("/rest/v1/rpc/pull")) }
    #expect(http.last == nil)
  }
}
