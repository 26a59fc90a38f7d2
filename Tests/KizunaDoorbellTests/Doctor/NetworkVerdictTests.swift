import HTTPClient
import HostKit
import Testing

@testable import KizunaDoorbell

@Suite struct NetworkVerdictTests {
  private func proxies(_ environment: [String: String]) throws -> Finding {
    let findings = NetworkVerdict.proxies(
      [
        ("requests go to a.example.com:443", try ServerURL("https://a.example.com")),
        ("the WebSocket to 10.0.0.1:80", try ServerURL("ws://10.0.0.1", for: .webSocket)),
      ], environment: environment)
    #expect(findings.count == 1)
    return findings[0]
  }

  @Test func proxiesAreNamedWithoutTheirCredentials() throws {
    let direct = try proxies([:])
    #expect(
      direct.text == "requests go to a.example.com:443 directly, the WebSocket to 10.0.0.1:80 directly")
    let one = try proxies(["HTTPS_PROXY": "http://ann:s3cret@proxy.example.com:3128"])
    #expect(one.status == .ok && one.text.contains("443 through http://proxy.example.com:3128, "))
    #expect(one.text.hasSuffix("directly") && !one.text.contains("s3cret") && !one.text.contains("ann"))
    let wrong = try proxies(["HTTPS_PROXY": "ftp://x:s3cret@y"])
    #expect(wrong.status == .failed && wrong.exitCode == .configuration)
    #expect(wrong.text.contains("HTTPS_PROXY") && !wrong.text.contains("s3cret"))
    // One that decides about nothing here.
    let idle = try proxies(["HTTPS_PROXY": "ftp://x:s3cret@y", "NO_PROXY": "*"])
    #expect(idle.status == .warning && idle.text.contains("HTTPS_PROXY") && !idle.text.contains("s3cret"))
  }

  @Test func names() throws {
    let server = try ServerURL("https://a.example.com")
    let found = NetworkVerdict.lookup(server, proxy: nil, addresses: .success(["192.0.2.1", "2001:db8::1"]))
    #expect(found.status == .ok && found.text == "a.example.com is 192.0.2.1, 2001:db8::1")
    let failed = NetworkVerdict.lookup(server, proxy: nil, addresses: .failure(.init(message: "no such host")))
    #expect(failed.status == .failed && failed.exitCode == .unreachable)
    #expect(NetworkVerdict.lookup(server, proxy: nil, addresses: nil).status == .failed)
    for (text, status) in [
      ("http://p:1", Finding.Status.skipped), ("socks5h://p:1", .skipped), ("socks5://p:1", .failed),
    ] {
      let proxy = try #require(ProxyServer(text))
      #expect(NetworkVerdict.lookup(server, proxy: proxy, addresses: nil).status == status)
    }
  }

  private static let answers: [(Result<Int, HTTPError>, Finding.Status, ExitCode, String)] = [
    (.success(200), .ok, .ok, "within 13 ms"), (.success(401), .ok, .ok, "within 13 ms"),
    (.success(308), .failed, .configuration, "redirects"), (.success(502), .failed, .unreachable, "502"),
    (.failure(HTTPError(.tls, "no certificate")), .failed, .unreachable, "no certificate"),
    (.failure(HTTPError(.proxy, "407")), .failed, .unreachable, "407"),
    (.failure(HTTPError(.timeout, "slow")), .failed, .unreachable, "slow"),
    (.failure(HTTPError(.invalidURL, "plain http")), .failed, .configuration, "plain http"),
  ]

  @Test(arguments: answers)
  func theServer(answer: Result<Int, HTTPError>, status: Finding.Status, exit: ExitCode, words: String) throws {
    let finding = NetworkVerdict.server(
      try ServerURL("https://a.example.com"), answer, duration: .milliseconds(12.9))
    #expect(finding.status == status && finding.exitCode == exit)
    #expect(finding.text.contains(words), "\(finding.text)")
    #expect((finding.remedy != nil) == (status != .ok))
  }
}
