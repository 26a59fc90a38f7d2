import Glibc
import HTTPClient
import HostKit
import Testing

@Suite struct CurlHTTPClientTests {
  /// Runs `body` with a server and a client, and ends both.
  func with<Result>(
    _ settings: CurlHTTPClient.Settings = .init(), server handler: @escaping RawServer.Handler,
    _ body: (CurlHTTPClient, RawServer) async throws -> Result
  ) async throws -> Result {
    let server = RawServer(handler)
    let client = CurlHTTPClient(settings)
    let outcome: Swift.Result<Result, any Error>
    do {
      outcome = .success(try await body(client, server))
    } catch {
      outcome = .failure(error)
    }
    await client.shutdown()
    server.stop()
    return try outcome.get()
  }

  func failure(_ body: () async throws -> HTTPResponse) async -> HTTPError? {
    do {
      let response = try await body()
      Issue.record("an answer with status \(response.status) came")
      return nil
    } catch {
      return error as? HTTPError
    }
  }

  @Test func aRequestArrivesAsGivenAndTheAnswerComesBackWhole() async throws {
    let before = SystemClock.monotonic
    try await with(server: { _, connection in
      connection.answer(201, headers: ["X-Two: b", "x-Empty:", "X-Spaced:   a b  "], "hello")
      return .keep
    }) { client, server in
      let response = try await client.send(
        HTTPRequest(
          method: "POST", url: "\(server.url)/rest/v1/rpc/pull?x=1",
          headers: [HTTPHeader("Content-Type", "application/json"), HTTPHeader("apikey", "k"), HTTPHeader("X-E", "")],
          body: Array("{\"a\":1}".utf8)))
      #expect(response.status == 201)
      #expect(String(decoding: response.body, as: UTF8.self) == "hello")
      #expect(response.header("x-two") == "b")
      #expect(response.header("X-EMPTY") == "")
      #expect(response.header("x-spaced") == "a b")
      #expect(response.requestSentAt > before)
      #expect(response.responseReceivedAt >= response.requestSentAt)
      #expect(response.responseReceivedAt <= SystemClock.monotonic)
      #expect(response.peerAddress == "127.0.0.1")
      let request = try #require(server.received.first)
      #expect(request.method == "POST")
      #expect(request.target == "/rest/v1/rpc/pull?x=1")
      #expect(String(decoding: request.body, as: UTF8.self) == "{\"a\":1}")
      #expect(request.header("content-type") == "application/json")
      #expect(request.header("apikey") == "k")
      #expect(request.header("x-e") == "")
      #expect(request.header("host") == "127.0.0.1:\(server.port)")
      #expect(request.header("expect") == nil)
      #expect(request.header("cookie") == nil)
    }
  }

  @Test(
    arguments: [
      ("GET", nil, nil), ("DELETE", nil, nil), ("HEAD", nil, nil), ("POST", nil, "0"), ("POST", "", "0"),
      ("PUT", "abc", "3"), ("PATCH", "abc", "3"), ("DELETE", "abc", "3"), ("GET", "abc", "3"),
    ] as [(String, String?, String?)])
  func methodsAndBodies(method: String, body: String?, length: String?) async throws {
    try await with(server: { request, connection in
      connection.answer(200, request.method == "HEAD" ? "" : "ok")
      return .keep
    }) { client, server in
      // Each after a POST on the same handle, whose traces must be gone.
      _ = try await client.send(HTTPRequest(method: "POST", url: server.url, body: Array("before".utf8)))
      let response = try await client.send(
        HTTPRequest(method: method, url: server.url, body: body.map { Array($0.utf8) }))
      #expect(response.status == 200)
      let request = try #require(server.received.last)
      #expect(request.method == method)
      #expect(request.header("content-length") == length)
      #expect(request.header("content-type") == nil)
      #expect(String(decoding: request.body, as: UTF8.self) == body ?? "")
      #expect(server.connectionCount == 1)
    }
  }

  @Test func oneConnectionServesOneRequestAfterAnother() async throws {
    try await with(server: { request, connection in
      connection.answer(200, "\(connection.number) \(request.target)")
      return .keep
    }) { client, server in
      for number in 0..<50 {
        let response = try await client.send(HTTPRequest(method: "GET", url: "\(server.url)/\(number)"))
        #expect(String(decoding: response.body, as: UTF8.self) == "1 /\(number)")
      }
      #expect(server.connectionCount == 1)
    }
  }

  @Test func aConnectionClosedWhileIdleIsReplacedUnnoticed() async throws {
    try await with(server: { _, connection in
      connection.answer(200, "x")
      return .close
    }) { client, server in
      for _ in 0..<5 {
        let again = try await client.send(HTTPRequest(method: "GET", url: server.url))
        #expect(again.status == 200)
      }
      #expect(server.connectionCount == 5)
    }
  }

  @Test func chunkedAnswersAreJoined() async throws {
    try await with(server: { _, connection in
      connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      for piece in ["5\r\nhello\r\n", "1\r\n \r\n", "5\r\nworld\r\n", "0\r\n\r\n"] { connection.write(piece) }
      return .keep
    }) { client, server in
      let response = try await client.send(HTTPRequest(method: "GET", url: server.url))
      #expect(String(decoding: response.body, as: UTF8.self) == "hello world")
    }
  }

  @Test func interimAnswersAreSkipped() async throws {
    try await with(server: { _, connection in
      connection.write("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
      connection.answer(200, headers: ["X-Final: 1"], "x")
      return .keep
    }) { client, server in
      let response = try await client.send(HTTPRequest(method: "GET", url: server.url))
      #expect(response.status == 200)
      #expect(response.header("link") == nil)
      #expect(response.header("x-final") == "1")
    }
  }

  @Test func redirectsAreAnswersLikeAnyOther() async throws {
    try await with(server: { request, connection in
      connection.answer(307, headers: ["Location: /elsewhere"], "")
      return .keep
    }) { client, server in
      let response = try await client.send(HTTPRequest(method: "GET", url: "\(server.url)/here"))
      #expect(response.status == 307)
      #expect(response.header("location") == "/elsewhere")
      #expect(server.received.map(\.target) == ["/here"])
    }
  }

  // MARK: Failures

  @Test func anAnswerThatDoesNotComeInTimeFails() async throws {
    try await with(server: { _, connection in
      connection.waitForClose()
      return .close
    }) { client, server in
      let error = await failure {
        try await client.send(HTTPRequest(method: "GET", url: server.url, timeout: .milliseconds(100)))
      }
      #expect(error?.kind == .timeout)
      #expect(error?.message == "127.0.0.1:\(server.port) did not answer completely within 100 ms")
    }
  }

  /// A connection that is there already is not blamed.
  @Test func anAnswerThatDoesNotComeOnAReusedConnectionIsNoMissingConnection() async throws {
    try await with(server: { request, connection in
      guard request.target == "/silent" else {
        connection.answer(200, "x")
        return .keep
      }
      connection.waitForClose()
      return .close
    }) { client, server in
      _ = try await client.send(HTTPRequest(method: "GET", url: server.url))
      let error = await failure {
        try await client.send(HTTPRequest(method: "GET", url: server.url + "/silent", timeout: .milliseconds(200)))
      }
      #expect(error?.kind == .timeout)
      #expect(error?.message == "127.0.0.1:\(server.port) did not answer completely within 200 ms")
    }
  }

  /// Going around a proxy that somebody asked for would be worse than not going.
  @Test func aProxyThatCannotBeReadIsNotGoneAround() async throws {
    let client = CurlHTTPClient(
      .init(proxy: ProxyRule(environment: ["HTTPS_PROXY": "ftp://x:s3cret@y"])))
    let error = await failure { try await client.send(HTTPRequest(method: "GET", url: "https://example.invalid/")) }
    await client.shutdown()
    #expect(error?.kind == .invalidURL)
    #expect(
      error?.message
        == "HTTPS_PROXY is set, but is no proxy's address; correct or unset it, or name example.invalid in NO_PROXY")
  }

  @Test func anAnswerThatStopsInTheMiddleFailsAtTheDeadline() async throws {
    try await with(server: { _, connection in
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
      connection.waitForClose()
      return .close
    }) { client, server in
      let error = await failure {
        try await client.send(HTTPRequest(method: "GET", url: server.url, timeout: .milliseconds(100)))
      }
      #expect(error?.kind == .timeout)
    }
  }

  @Test(
    arguments: ["", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"], [true, false])
  func aConnectionThatEndsEarlyIsLost(sent: String, byReset: Bool) async throws {
    try await with(server: { _, connection in
      connection.write(sent)
      if byReset { connection.reset() }
      return .close
    }) { client, server in
      let error = await failure { try await client.send(HTTPRequest(method: "GET", url: server.url)) }
      #expect(error?.kind == .connectionLost)
      #expect(
        error?.message == "127.0.0.1:\(server.port) closed the connection before its answer was complete")
    }
  }

  @Test func anAnswerThatIsNotHTTPIsRefused() async throws {
    try await with(server: { _, connection in
      connection.write("SSH-2.0-OpenSSH_9.2\r\n\r\n")
      return .close
    }) { client, server in
      let error = await failure { try await client.send(HTTPRequest(method: "GET", url: server.url)) }
      #expect(error?.kind == .other)
      #expect(error?.message == "what 127.0.0.1:\(server.port) answered is not valid HTTP")
    }
  }

  @Test(arguments: [true, false]) func aLongAnswerIsCutOff(announced: Bool) async throws {
    try await with(server: { _, connection in
      if announced {
        connection.answer(200, String(repeating: "x", count: 1001))
      } else {
        // Without a length and without an end: only counting what comes can stop this.
        connection.write("HTTP/1.1 200 OK\r\n\r\n")
        let piece = [UInt8](repeating: 0x78, count: 500)
        for _ in 0..<3 { connection.write(piece) }
        connection.waitForClose()
      }
      return .close
    }) { client, server in
      let error = await failure {
        try await client.send(HTTPRequest(method: "GET", url: server.url, maximumResponseBytes: 1000))
      }
      #expect(error?.kind == .tooLarge)
      #expect(error?.message == "the answer of 127.0.0.1:\(server.port) is larger than 1000 bytes")
    }
  }

  /// For whoever wants to know what it was about, whether its length is known from the start or not.
  @Test(arguments: [true, false]) func theHeadOfALongAnswerIsKeptOnDemand(announced: Bool) async throws {
    try await with(server: { _, connection in
      let text = "begin" + String(repeating: "x", count: 100_000)
      if announced {
        connection.answer(200, text)
      } else {
        connection.write("HTTP/1.1 200 OK\r\n\r\n")
        connection.write(text)
        connection.waitForClose()
      }
      return .close
    }) { client, server in
      for (limit, count) in [(1_000, 1_000), (50_000, 16 << 10)] {
        var request = HTTPRequest(method: "GET", url: server.url, maximumResponseBytes: limit)
        let plain = await failure { try await client.send(request) }
        #expect(plain?.kind == .tooLarge && plain?.head == [])
        request.keepsHead = true
        let error = await failure { try await client.send(request) }
        #expect(error?.kind == .tooLarge && error?.head.count == count)
        #expect(error?.head.starts(with: "beginx".utf8) == true)
        var shown = ""
        dump(error, to: &shown)
        #expect(!shown.contains("head"), "\(shown)")
      }
    }
  }

  @Test func anAnswerOfExactlyTheLimitPasses() async throws {
    try await with(server: { _, connection in
      connection.answer(200, String(repeating: "x", count: 1000))
      return .keep
    }) { client, server in
      let response = try await client.send(HTTPRequest(method: "GET", url: server.url, maximumResponseBytes: 1000))
      #expect(response.body.count == 1000)
    }
  }

  @Test func endlessHeadersAreCutOff() async throws {
    try await with(server: { _, connection in
      connection.write("HTTP/1.1 200 OK\r\n")
      let line = "X-Filler: \(String(repeating: "x", count: 1000))\r\n"
      for _ in 0..<1000 { connection.write(line) }
      connection.answer(200, "x")
      return .close
    }) { client, server in
      let error = await failure { try await client.send(HTTPRequest(method: "GET", url: server.url)) }
      #expect(error?.kind == .tooLarge)
    }
  }

  @Test func aPortNobodyListensOnIsUnreachable() async throws {
    let port = RawServer.freePort()
    let client = CurlHTTPClient()
    let error = await failure {
      try await client.send(HTTPRequest(method: "GET", url: "http://127.0.0.1:\(port)/secret?apikey=secret"))
    }
    #expect(error == HTTPError(.unreachable, "127.0.0.1:\(port) cannot be reached: connection refused"))
    await client.shutdown()
  }

  @Test func aNameThatDoesNotExistIsUnresolved() async throws {
    let client = CurlHTTPClient()
    let error = await failure {
      try await client.send(HTTPRequest(method: "GET", url: "https://nowhere.invalid/x"))
    }
    #expect(error == HTTPError(.unresolved, "the name of nowhere.invalid:443 cannot be resolved"))
    await client.shutdown()
  }

  @Test(arguments: [
    ("http://example.com/", "plain http is allowed only to this machine"),
    ("ftp://127.0.0.1/", "must start with https"),
    ("https://user:secret@127.0.0.1/", "must not hold a user name"), ("nonsense", "must have the form https://host"),
  ])
  func addressesOutsideTheRuleAreNotContacted(url: String, says: String) async throws {
    let client = CurlHTTPClient()
    let error = await failure { try await client.send(HTTPRequest(method: "GET", url: url)) }
    #expect(error?.kind == .invalidURL)
    #expect(error?.message.contains(says) == true)
    #expect(error?.message.contains("secret") == false)
    await client.shutdown()
  }

  @Test(arguments: [HTTPHeader("X", "a\r\nY: b"), HTTPHeader("X: b\r\nY", "a"), HTTPHeader("", "a")])
  func aHeaderCannotSmuggleAnother(header: HTTPHeader) async throws {
    try await with(server: { _, connection in
      connection.answer(200, "x")
      return .keep
    }) { client, server in
      let error = await failure {
        try await client.send(HTTPRequest(method: "GET", url: server.url, headers: [header]))
      }
      #expect(error?.kind == .other)
      #expect(server.received.isEmpty)
      // The handle is as good as before.
      let again = try await client.send(HTTPRequest(method: "GET", url: server.url))
      #expect(again.status == 200)
    }
  }
}
