import HostKit
import Testing

@testable import SupabaseRealtime

@Suite struct ProxyAnswerTests {
  private static func refused(_ status: Int, takesBasic: Bool = true) -> ProxyAnswer.Verdict {
    .refused(status: status, takesBasic: takesBasic)
  }

  /// What a proxy sends, how much of it is its answer (nil: all of it), and the verdict.
  private static let answers: [(text: String, used: Int?, verdict: ProxyAnswer.Verdict)] = [
    ("HTTP/1.1 200 Connection established\r\nVia: a\r\n\r\n", nil, .opened),
    ("HTTP/1.0 200 OK\r\n\r\n", nil, .opened), ("HTTP/1.1 200\r\n\r\n", nil, .opened),
    ("HTTP/1.1 201 Made\r\n\r\n", nil, .opened), ("HTTP/1.1 299 \r\n\r\n", nil, .opened),
    ("HTTP/1.1 200 OK\n\n", nil, .opened), ("HTTP/1.1 200 OK\nVia: a\n\r\n", nil, .opened),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 38, .opened),
    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", nil, .opened),
    ("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 502 No\r\n\r\n", nil, refused(502)),
    ("HTTP/1.1 101 Switching Protocols\r\n\r\n", nil, refused(101)),
    ("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", nil, refused(302)),
    ("HTTP/1.1 403 No\r\nContent-Type: text/html\r\n\r\n<p>no</p>", 44, refused(403)),
    ("HTTP/1.1 407\r\n\r\n", nil, refused(407)),
    ("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=a\r\n\r\n", nil, refused(407)),
    ("HTTP/1.1 407 No\r\nproxy-authenticate:Negotiate, basic realm=a\r\n\r\n", nil, refused(407)),
    (
      "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nProxy-Authenticate: Digest realm=a\r\n\r\n", nil,
      refused(407, takesBasic: false)
    ),
    (
      "HTTP/1.1 407 No\r\nProxy-Authenticate: Digest realm=\"a, basic\"\r\n\r\n", nil, refused(407, takesBasic: false)
    ),
    (
      "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM realm=\"a\\\", b\", Basic realm=\"c, d\"\r\n\r\n", nil, refused(407)
    ),
    ("SSH-2.0-OpenSSH_9.2\r\n", 1, .notHTTP), ("\r\n", 1, .notHTTP), ("\u{15}\u{3}", 1, .notHTTP),
    ("HTTP/2 200\r\n\r\n", 6, .notHTTP), ("http/1.1 200 OK\r\n\r\n", 1, .notHTTP),
    ("HTTP/1.1\r\n", nil, .notHTTP), ("HTTP/1.1 20\r\n", nil, .notHTTP), ("HTTP/1.1 2000 OK\r\n", nil, .notHTTP),
    ("HTTP/1.1  200 OK\r\n", nil, .notHTTP), ("HTTP/1.1 +20 OK\r\n", nil, .notHTTP),
    ("HTTP/1.1 099 OK\r\n", nil, .notHTTP), ("HTTP/1. 200 OK\r\n", nil, .notHTTP),
    ("HTTP/1.1 200 OK\r\n", nil, .incomplete), ("HTTP/1.1 200 OK\r\n\r", nil, .incomplete), ("", nil, .incomplete),
  ]

  @Test(arguments: answers.indices)
  func theAnswerIsTheSameHoweverItIsCut(index: Int) {
    let (text, used, verdict) = Self.answers[index]
    let bytes = Array(text.utf8)
    for size in 1...max(1, bytes.count) {
      let read = Self.read(bytes, inPiecesOf: size)
      #expect(read.used == used ?? bytes.count, "pieces of \(size)")
      #expect(read.verdict == verdict, "pieces of \(size)")
    }
  }

  @Test(arguments: ["HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 "], ["a", "a: b\r\n"])
  func anAnswerWithoutEndIsTooLong(beginning: String, piece: String) {
    let bytes = Array((beginning + String(repeating: piece, count: ProxyAnswer.maximumBytes)).utf8)
    let read = Self.read(bytes, inPiecesOf: 1_000)
    #expect(read.used == ProxyAnswer.maximumBytes)
    #expect(read.verdict == .tooLong)
  }

  private static func read(_ bytes: [UInt8], inPiecesOf size: Int) -> (used: Int, verdict: ProxyAnswer.Verdict) {
    var answer = ProxyAnswer()
    var total = 0
    for start in stride(from: 0, to: bytes.count, by: size) {
      let (used, verdict) = answer.take(bytes[start..<min(start + size, bytes.count)])
      total += used
      if verdict != .incomplete { return (total, verdict) }
    }
    return (total, .incomplete)
  }

  // MARK: What is asked and said

  private static let credentials = ["zoe", "secret", "em9lOnNlY3JldA"]

  @Test func theRequestNamesTheServerAndCarriesTheCredentials() throws {
    let plain = TunnelRequest(origin: "[::1]:4000", proxy: try #require(ProxyServer("http://proxy:3128")))
    #expect(
      String(decoding: plain.bytes, as: UTF8.self) == "CONNECT [::1]:4000 HTTP/1.1\r\nHost: [::1]:4000\r\n\r\n")
    let signed = TunnelRequest(origin: "db:443", proxy: try #require(ProxyServer("http://zoe:secret@proxy:3128")))
    #expect(
      String(decoding: signed.bytes, as: UTF8.self)
        == "CONNECT db:443 HTTP/1.1\r\nHost: db:443\r\nProxy-Authorization: Basic em9lOnNlY3JldA==\r\n\r\n")
  }

  @Test(arguments: [
    ("", 407, true, "(407: it wants a user name and password"), ("zoe:secret@", 407, true, "(407: it does not accept"),
    ("zoe:secret@", 407, false, "other than Basic"), ("", 407, false, "other than Basic"),
    ("zoe:secret@", 403, true, "(403: it does not allow"), ("", 405, true, "(405: it opens no tunnels"),
    ("", 501, true, "(501: it opens no tunnels"), ("", 502, true, "(502: it could not reach the server)"),
    ("", 504, true, "(504: it could not reach the server)"), ("", 503, true, "(503: it cannot do it now)"),
    ("", 418, true, "refused the tunnel to db:443 (418)."),
  ])
  func aRefusalNamesTheStatusAndWhatToDo(user: String, status: Int, takesBasic: Bool, part: String) throws {
    let request = TunnelRequest(origin: "db:443", proxy: try #require(ProxyServer("http://\(user)proxy:3128")))
    let failure = request.refused(status: status, takesBasic: takesBasic)
    #expect(failure.kind == .proxy)
    #expect(failure.message.hasPrefix("The proxy proxy:3128 refused the tunnel to db:443 (\(status)"))
    #expect(failure.message.contains(part))
    for text in Self.credentials { #expect(!failure.message.contains(text)) }
  }
}
