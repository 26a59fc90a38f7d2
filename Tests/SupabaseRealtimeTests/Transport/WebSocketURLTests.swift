import Testing

@testable import SupabaseRealtime

@Suite struct WebSocketURLTests {
  @Test(arguments: [
    ("ws://a", false, "a", 80, "/", "a"), ("wss://a.b/x?y=1", true, "a.b", 443, "/x?y=1", "a.b"),
    ("WSS://a:443", true, "a", 443, "/", "a"), ("ws://a:443/", false, "a", 443, "/", "a:443"),
    ("ws://127.0.0.1:4000?vsn=2.0.0", false, "127.0.0.1", 4000, "/?vsn=2.0.0", "127.0.0.1:4000"),
    ("ws://[::1]:9/p#fragment", false, "::1", 9, "/p", "[::1]:9"),
  ])
  func isTakenApart(text: String, isSecure: Bool, host: String, port: UInt16, target: String, header: String) throws {
    let url = try WebSocketURL(text)
    #expect(url.isSecure == isSecure)
    #expect(url.host == host)
    #expect(url.port == port)
    #expect(url.target == target)
    #expect(url.hostHeader == header)
  }

  @Test(arguments: [
    "", "a", "http://a", "ws://", "ws:///x", "ws://a b", "ws://a/ü", "ws://u@a", "ws://a:0", "ws://a:65536", "ws://a:x",
    "ws://[::1", "ws://[::1]x", "wss://[::1]/", "ws://\(String(repeating: "a", count: 111))",
    "ws://a/\(String(repeating: "x", count: 1_900))",
  ])
  func whatCannotBeUsedIsRefused(text: String) {
    let error = #expect(throws: RealtimeTransportFailure.self) { try WebSocketURL(text) }
    #expect(error?.kind == .invalidURL)
  }

  @Test func aLongKeyIsNotShown() {
    let error = #expect(throws: RealtimeTransportFailure.self) {
      try WebSocketURL("wss://a/x?apikey=\(String(repeating: "secret", count: 400))")
    }
    #expect(error?.message.contains("secret") == false)
    #expect(error?.message.contains("header") == true)
  }
}
