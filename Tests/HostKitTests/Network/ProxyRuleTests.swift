import HostKit
import Testing

@Suite struct ProxyServerTests {
  @Test(arguments: [
    ("http://proxy.example:3128", "http://proxy.example:3128"), ("proxy.example:3128/", "http://proxy.example:3128"),
    ("proxy.example", "http://proxy.example:80"), ("https://Proxy.Example", "https://proxy.example:443"),
    ("socks5://10.0.0.1", "socks5://10.0.0.1:1080"), ("socks5h://p:1", "socks5h://p:1"),
    ("[::1]:3128", "http://[::1]:3128"),
    ("http://user:pass@proxy.example:3128", "http://proxy.example:3128"),
  ]) func isRead(text: String, address: String) {
    #expect(ProxyServer(text)?.address == address)
  }

  @Test(arguments: [
    "", "ftp://proxy", "http://", "http://proxy:0", "http://proxy:x", "http://proxy/path", "http://pro xy",
  ])
  func whatIsNoProxyIsRefused(text: String) {
    #expect(ProxyServer(text) == nil)
  }

  @Test func credentialsAreDecodedAndNeverShown() throws {
    let proxy = try #require(ProxyServer("http://us%40er:p%3Aa:s%2Fs@proxy.example:3128"))
    #expect(proxy.user == "us@er")
    #expect(proxy.password == "p:a:s/s")
    #expect("\(proxy) \(proxy.label)" == "http://proxy.example:3128 proxy.example:3128")
  }
}

@Suite struct ProxyRuleTests {
  @Test(
    arguments: [
      (["HTTPS_PROXY": "ftp://p"], "https://example.com", "HTTPS_PROXY"),
      (["https_proxy": "ftp://p", "HTTPS_PROXY": "a:1"], "https://example.com", "https_proxy"),
      (["HTTPS_PROXY": "ftp://p"], "wss://example.com", "HTTPS_PROXY"),
      (["ALL_PROXY": "ftp://p"], "http://10.0.0.1", "ALL_PROXY"),
      (["http_proxy": "ftp://p"], "http://10.0.0.1", "http_proxy"),
      (["http_proxy": "ftp://p"], "https://example.com", nil),
      (["HTTPS_PROXY": "ftp://p"], "http://10.0.0.1", nil),
      (["HTTPS_PROXY": "ftp://p", "NO_PROXY": "example.com"], "https://example.com", nil),
      (["HTTPS_PROXY": "ftp://p"], "https://localhost", nil),
      (["ALL_PROXY": "ftp://p", "HTTPS_PROXY": "a:1"], "https://example.com", nil),
      (["HTTPS_PROXY": "", "ALL_PROXY": ""], "https://example.com", nil),
      ([:], "https://example.com", nil),
    ] as [([String: String], String, String?)])
  func aProxyThatCannotBeReadIsAProblemOfWhatItDecides(
    environment: [String: String], target: String, name: String?
  ) throws {
    let rule = ProxyRule(environment: environment)
    let url = try ServerURL(target, for: .webSocket)
    let problem = rule.problem(for: url)
    #expect(problem?.hasPrefix("\(name ?? "") is set, but is no proxy's address") == name.map { _ in true })
    #expect(problem?.contains("ftp") != true)
    if name != nil { #expect(rule.proxy(for: url) == nil) }
  }

  private func proxy(_ target: String, _ environment: [String: String], includesLoopback: Bool = false) throws
    -> String?
  {
    let url = try ServerURL(target, for: .webSocket)
    return ProxyRule(environment: environment, includesLoopback: includesLoopback).proxy(for: url)?.label
  }

  @Test(
    arguments: [
      (["https_proxy": "a:1"], "https://example.com", "a:1"),
      (["HTTPS_PROXY": "a:1"], "https://example.com", "a:1"),
      (["https_proxy": "a:1", "HTTPS_PROXY": "b:1"], "https://example.com", "a:1"),
      (["https_proxy": "", "HTTPS_PROXY": "b:1"], "https://example.com", "b:1"),
      (["all_proxy": "a:1"], "https://example.com", "a:1"),
      (["ALL_PROXY": "a:1"], "wss://example.com", "a:1"),
      (["ALL_PROXY": "a:1", "HTTPS_PROXY": "b:1"], "https://example.com", "b:1"),
      (["ALL_PROXY": "a:1"], "http://10.0.0.1", "a:1"),
      // The one rule that is easily got wrong: this variable is for plain text.
      (["http_proxy": "a:1"], "https://example.com", nil),
      (["http_proxy": "a:1"], "wss://example.com", nil),
      (["http_proxy": "a:1"], "http://10.0.0.1", "a:1"),
      (["http_proxy": "a:1"], "ws://10.0.0.1", "a:1"),
      (["HTTP_PROXY": "a:1"], "http://10.0.0.1", nil),
      (["https_proxy": "a:1"], "http://10.0.0.1", nil),
      (["https_proxy": "nonsense:port"], "https://example.com", nil),
      ([:], "https://example.com", nil),
    ] as [([String: String], String, String?)])
  func variables(environment: [String: String], target: String, expected: String?) throws {
    #expect(try proxy(target, environment) == expected)
  }

  @Test(arguments: ["http://127.0.0.1", "https://localhost", "http://[::1]", "http://127.9.9.9", "wss://localhost"])
  func loopbackIsNeverProxiedUnlessAsked(target: String) throws {
    let environment = ["ALL_PROXY": "a:1", "http_proxy": "a:1", "https_proxy": "a:1"]
    #expect(try proxy(target, environment) == nil)
    #expect(try proxy(target, environment, includesLoopback: true) == "a:1")
    #expect(
      try proxy(target, environment.merging(["NO_PROXY": "127.0.0.0/8,localhost,::1"]) { $1 }, includesLoopback: true)
        == nil)
  }

  @Test(arguments: [
    ("*", "https://example.com", true), ("example.com", "https://example.com", true),
    ("example.com", "https://api.example.com", true), (".example.com", "https://api.example.com", true),
    (".example.com", "https://example.com", true), ("*.example.com", "https://api.example.com", true),
    ("example.com", "https://notexample.com", false), ("example.com", "https://example.com.evil.org", false),
    ("EXAMPLE.com", "https://example.COM", true), ("example.com:443", "https://example.com", true),
    ("example.com:8443", "https://example.com", false), ("example.com:8443", "https://example.com:8443", true),
    ("10.0.0.0/8", "https://10.1.2.3", true), ("10.0.0.0/8", "https://11.1.2.3", false),
    ("10.1.2.3", "https://10.1.2.3", true),
    ("10.1.2.3:443", "https://10.1.2.3", true), ("10.1.2.3:444", "https://10.1.2.3", false),
    ("fd00::/8", "https://[fd12::1]", true), ("[fd12::1]:443", "https://[fd12::1]", true),
    ("fd12::1", "https://[fd12::1]", true),
    ("a, b  c,example.com", "https://example.com", true), ("", "https://example.com", false),
    (" , ", "https://example.com", false),
    ("10.0.0.0/99", "https://10.1.2.3", false), ("com", "https://example.com", true),
  ]) func exceptions(list: String, target: String, isExcepted: Bool) throws {
    for name in ["NO_PROXY", "no_proxy"] {
      #expect(try (proxy(target, ["ALL_PROXY": "a:1", name: list]) == nil) == isExcepted)
    }
  }

  @Test func aProxyThatCannotBeReadIsNamed() {
    #expect(
      ProxyRule.unreadable(in: ["HTTPS_PROXY": "ftp://x", "ALL_PROXY": "ok:1", "https_proxy": ""]) == ["HTTPS_PROXY"])
  }

  @Test func aConfiguredProxyIsForEverything() throws {
    let rule = ProxyRule(try #require(ProxyServer("a:1")), exceptions: "example.org")
    #expect(rule.proxy(for: try ServerURL("https://example.com"))?.label == "a:1")
    #expect(rule.proxy(for: try ServerURL("http://10.0.0.1"))?.label == "a:1")
    #expect(rule.proxy(for: try ServerURL("https://example.org")) == nil)
    #expect(ProxyRule.direct.proxy(for: try ServerURL("https://example.com")) == nil)
  }
}
