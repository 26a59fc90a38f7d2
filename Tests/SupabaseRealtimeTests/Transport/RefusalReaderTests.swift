import HTTPClient
import HostKit
import Testing

@testable import SupabaseRealtime

@Suite struct RefusalReaderTests {
  /// Answers every request alike and remembers them.
  private final class Answering: HTTPTransport {
    let requests = Locked<[HTTPRequest]>([])
    private let answer: HTTPResponse?

    init(_ answer: HTTPResponse?) { self.answer = answer }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
      requests.withLock { $0.append(request) }
      guard let answer else { throw HTTPError(.unreachable, "gone") }
      return answer
    }
  }

  @Test(arguments: [(401, true), (403, true), (404, false), (429, false), (500, false)])
  func onlyWhereTheTextDecidesItIsAskedAgain(status: Int, isNeeded: Bool) {
    let reader = RefusalReader(http: Answering(nil))
    #expect(reader.isNeeded(status: status, body: nil) == isNeeded)
    #expect(!reader.isNeeded(status: status, body: "known"))
    #expect(!RefusalReader(http: nil).isNeeded(status: status, body: nil))
  }

  @Test func theSameRequestIsMadeOverHTTP() async {
    let http = Answering(HTTPResponse(status: 401, body: Array("API key is missing".utf8)))
    let request = RealtimeTransportRequest(url: "wss://h/p?vsn=2.0.0", headers: [("x-api-key", "k")])
    #expect(await RefusalReader(http: http).body(of: request, status: 401) == "API key is missing")
    let sent = http.requests.withLock { $0 }
    #expect(sent.count == 1)
    #expect(sent.first?.url == "https://h/p?vsn=2.0.0")
    let headers = Dictionary(
      (sent.first?.headers ?? []).map { ($0.name.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first })
    #expect(headers["x-api-key"] == "k")
    #expect(headers["upgrade"] == "websocket")
    #expect(headers["sec-websocket-version"] == "13")
  }

  @Test func anotherAnswerSaysNothing() async {
    let request = RealtimeTransportRequest(url: "ws://h/")
    for answer in [HTTPResponse(status: 200, body: [65]), HTTPResponse(status: 403), nil] {
      #expect(await RefusalReader(http: Answering(answer)).body(of: request, status: 403) == nil)
    }
  }

  /// The text of a refusal that libwebsockets did not see, because it came in a segment of its own.
  @Test(.timeLimit(.minutes(5)))
  func aLateTextIsFetched() async {
    let server = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write("HTTP/1.1 403 Forbidden\r\ncontent-length: 5\r\n\r\n")
      peer.drain()
    }
    let http = Answering(HTTPResponse(status: 403, body: Array("why".utf8)))
    let probe = TransportProbe(
      RealtimeTransportRequest(url: server.url), over: LibwebsocketsTransport(http: http))
    #expect(await probe.rest() == [.refused(status: 403, retryAfterSeconds: nil, body: "why")])
    #expect(http.requests.withLock { $0.count } == 1)
  }
}
