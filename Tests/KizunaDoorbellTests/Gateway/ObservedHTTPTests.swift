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
    #expect(
      http.last
        == .init(
          function: "pull", sentAt: 5, receivedAt: 9, outcome: .answered(status: 200, code: nil), requestBytes: 0))
    _ = try await http.send(request("/rest/v1/rpc/push"))
    #expect(http.last?.outcome == .answered(status: 401, code: "PGRST301"))
    #expect(http.last?.refusal == .token)
    #expect(http.wasAccepted)
    #expect(http.last("pull")?.outcome == .answered(status: 200, code: nil))
  }

  private static let answers: [(Int, String, ObservedHTTP.Refusal?)] = [
    (401, #"{"code":"PGRST303","message":"JWT expired"}"#, .expired),
    (401, #"{"code":"PGRST301","message":"JWT expired"}"#, .expired),
    (401, #"{"code":"PGRST301","message":"JWSError JWSInvalidSignature"}"#, .token),
    (401, #"{"message":"Invalid API key"}"#, .key), (403, #"{"message":"No API key found in request"}"#, .key),
    (401, "", .token), (401, "<html>", .token), (403, "", .token), (403, #"{"code":"PGRST301"}"#, .token),
    (403, #"{"code":"42501","message":"permission denied for table todos"}"#, nil), (404, "", nil), (500, "", nil),
    (400, #"{"message":"Invalid API key"}"#, nil),
  ]

  @Test(arguments: answers)
  func tellsWhatARefusalIsAbout(status: Int, body: String, refusal: ObservedHTTP.Refusal?) async throws {
    let http = ObservedHTTP(FakeHTTP { _ in HTTPResponse(status: status, body: Array(body.utf8)) })
    _ = try await http.send(request("/rest/v1/rpc/pull"))
    #expect(http.last?.refusal == refusal)
    #expect(!http.wasAccepted)
    http.forget()
    #expect(http.last == nil)
  }

  @Test func oneAnswerAsAskedAcceptsTheCredentials() async throws {
    let statuses = Locked([200, 401])
    let http = ObservedHTTP(
      FakeHTTP { _ in HTTPResponse(status: statuses.withLock { $0.removeFirst() }, body: Array("{}".utf8)) })
    _ = try await http.send(request("/rest/v1/rpc/pull"))
    #expect(http.wasAccepted)
    _ = try await http.send(request("/rest/v1/rpc/pull"))
    #expect(http.wasAccepted)
  }

  /// A network's sign-in page says nothing about the credentials, and is no answer of the server's.
  @Test(arguments: ["<html>", "", "[]"])
  func anotherProgramsAnswerAcceptsNothing(body: String) async throws {
    let http = ObservedHTTP(FakeHTTP { _ in HTTPResponse(status: 200, body: Array(body.utf8)) })
    _ = try await http.send(request("/rest/v1/rpc/pull"))
    #expect(!http.wasAccepted)
    #expect(http.last?.isForeign == true)
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
