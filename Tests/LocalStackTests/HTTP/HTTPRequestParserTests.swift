import Testing

@testable import LocalStack

@Suite struct HTTPRequestParserTests {
  /// All events of a text given in pieces of `size` bytes.
  private func events(_ text: String, size: Int = .max) throws -> [HTTPRequestParser.Event] {
    var parser = HTTPRequestParser()
    var events: [HTTPRequestParser.Event] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      parser.add(rest.prefix(size))
      rest = rest.dropFirst(size)
      while let event = try parser.next() { events.append(event) }
    }
    return events
  }

  private static let two = """
    POST /rest/v1/rpc/pull?a=1&b=%20 HTTP/1.1\r
    Host: x\r
    Content-Length: 5\r
    X-Empty:\r
    \r
    hello\r
    GET /next HTTP/1.1\r
    host: y\r
    \r

    """

  @Test(arguments: 1...40)
  func requestsAreReadHoweverTheyAreCut(size: Int) throws {
    #expect(
      try events(Self.two, size: size) == [
        .request(
          StackRequest(
            method: "POST", path: "/rest/v1/rpc/pull", query: "a=1&b=%20",
            headers: [StackHeader("Host", "x"), StackHeader("Content-Length", "5"), StackHeader("X-Empty", "")],
            body: Array("hello".utf8)), keepAlive: true),
        .request(StackRequest(method: "GET", path: "/next", headers: [StackHeader("host", "y")]), keepAlive: true),
      ])
  }

  @Test(arguments: [1, 3, 1_000])
  func chunkedBodiesAreJoined(size: Int) throws {
    let text =
      "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\nt: v\r\n\r\n"
    let events = try events(text, size: size)
    guard case .request(let request, _) = events.first else {
      Issue.record("no request")
      return
    }
    #expect(events.count == 1)
    #expect(String(decoding: request.body, as: UTF8.self) == "abc0123456789")
  }

  @Test func aClientThatWaitsIsToldToContinue() throws {
    var parser = HTTPRequestParser()
    parser.add(Array("POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n".utf8))
    #expect(try parser.next() == .continueExpected)
    #expect(try parser.next() == nil)
    parser.add(Array("ok".utf8))
    guard case .request(let request, _) = try parser.next() else {
      Issue.record("no request")
      return
    }
    #expect(request.body == Array("ok".utf8))
  }

  @Test(arguments: [
    ("HTTP/1.1\r\nconnection: close", false), ("HTTP/1.1\r\nconnection: Keep-Alive", true), ("HTTP/1.0\r\nx: y", false),
    ("HTTP/1.0\r\nconnection: keep-alive", true),
  ])
  func theConnectionIsKeptWhereBothSidesCan(tail: String, isKept: Bool) throws {
    guard case .request(_, let keepAlive) = try events("GET / \(tail)\r\n\r\n").first else {
      Issue.record("no request")
      return
    }
    #expect(keepAlive == isKept)
  }

  @Test(arguments: [
    ("nonsense\r\n\r\n", 400), ("\u{16}\u{3}\u{1}", 400), ("GET / HTTP/2.0\r\n\r\n", 400),
    ("GET x HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400), ("GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\ncontent-length: 999999999\r\n\r\n", 413),
    ("GET /realtime/v1/websocket?\(String(repeating: "x", count: 8_000)) HTTP/1.1\r\n\r\n", 414),
    ("GET /\(String(repeating: "x", count: 16_384)) HTTP/1.1\r\n\r\n", 414),
    ("GET / HTTP/1.1\r\na: \(String(repeating: "x", count: 4_097))\r\n\r\n", 431),
    ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
    ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFF\r\n", 413),
    ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n7FFFFFFFFFFFFFFF\r\n", 413),
  ])
  func whatIsNoRequestIsRefused(text: String, status: Int) {
    #expect(throws: HTTPRequestParser.Refusal(status: status)) { try events(text) }
  }
}

@Suite struct HTTPDateTests {
  @Test(
    arguments: [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (1_796_000_726_000, "Mon, 30 Nov 2026 01:05:26 GMT"),
      (951_782_400_000, "Tue, 29 Feb 2000 00:00:00 GMT"), (4_102_444_799_999, "Thu, 31 Dec 2099 23:59:59 GMT"),
    ] as [(Int64, String)])
  func isWrittenAsHTTPDemands(milliseconds: Int64, text: String) {
    #expect(HTTPDate.text(milliseconds: milliseconds) == text)
  }
}
