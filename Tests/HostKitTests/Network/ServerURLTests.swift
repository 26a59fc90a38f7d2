import HostKit
import Testing

@Suite struct ServerURLTests {
  @Test(arguments: [
    ("https://example.supabase.co", "https://example.supabase.co"),
    ("https://example.supabase.co/", "https://example.supabase.co"),
    ("HTTPS://Example.Supabase.CO///", "https://example.supabase.co"),
    ("https://example.com:443/base/", "https://example.com/base"),
    ("https://example.com.", "https://example.com"),
    ("https://example.com:8443", "https://example.com:8443"),
    ("http://127.0.0.1:54321", "http://127.0.0.1:54321"),
    ("http://localhost:80", "http://localhost"),
    ("http://[::1]:54321/x", "http://[::1]:54321/x"),
    ("https://[2001:DB8::1]", "https://[2001:db8::1]"),
  ]) func isReadAndWritten(text: String, address: String) throws {
    #expect(try ServerURL(text).http() == address)
  }

  @Test(arguments: [
    "http://127.0.0.1", "http://127.255.255.254", "http://localhost", "http://LOCALHOST", "http://raspberry.local",
    "http://10.0.0.1", "http://172.16.0.1", "http://172.31.255.255", "http://192.168.1.1", "http://169.254.1.1",
    "http://[::1]", "http://[fc00::1]", "http://[fdff::1]", "http://[fe80::1]", "http://[febf::1]",
    "http://[::ffff:127.0.0.1]", "http://[::ffff:10.0.0.1]",
  ]) func plainTextIsAllowedToNearHosts(text: String) throws {
    #expect(try !ServerURL(text).isSecure)
  }

  @Test(arguments: [
    "http://example.com", "http://11.0.0.1", "http://172.15.0.1", "http://172.32.0.1", "http://192.169.0.1",
    "http://169.253.0.1", "http://8.8.8.8", "http://0.0.0.0", "http://local", "http://localhost.example.com",
    "http://evil-local", "http://127.0.0.1.example.com", "http://127.1", "http://2130706433", "http://[2001:db8::1]",
    "http://[fec0::1]", "http://[::ffff:8.8.8.8]",
  ]) func plainTextIsRefusedToOthers(text: String) {
    let error = #expect(throws: ServerURLError.self) { try ServerURL(text) }
    #expect(error?.code == .configInvalid)
    #expect(error?.message.hasPrefix("plain http is allowed only to this machine and to private addresses") == true)
  }

  @Test(arguments: [
    "", "example.com", "https:", "https://", "https:///path", "https://:443", "ftp://example.com", "wss://example.com",
    "https://user:s3cret@example.com", "https://user@example.com", "https://example.com:0", "https://example.com:65536",
    "https://example.com:", "https://example.com:8a", "https://exa mple.com", "https://ex%41mple.com",
    "https://bücher.de",
    "https://example.com?x=1", "https://example.com/#x", "https://[::1", "https://[zz::1]", "https://::1",
    "https://.example.com", "https://a..b", "https://example.com/\u{7}",
  ]) func whatIsNoServerAddressIsRefused(text: String) {
    let error = #expect(throws: ServerURLError.self) { try ServerURL(text) }
    #expect(error?.message.contains("s3cret") == false)
  }

  @Test(arguments: [
    ("wss://example.com/socket/websocket", "wss://example.com/socket/websocket", true),
    ("https://example.com/realtime/v1/websocket", "wss://example.com/realtime/v1/websocket", true),
    ("ws://127.0.0.1:4000/socket/websocket?region=eu", "ws://127.0.0.1:4000/socket/websocket?region=eu", false),
  ]) func webSocketAddresses(text: String, address: String, isSecure: Bool) throws {
    let url = try ServerURL(text, for: .webSocket)
    #expect(url.webSocket() == address)
    #expect(url.isSecure == isSecure)
  }

  @Test func aPublicHostNeedsAnEncryptedWebSocket() {
    #expect(throws: ServerURLError.self) { try ServerURL("ws://example.com/socket", for: .webSocket) }
  }

  @Test func pathsAreAppended() throws {
    let url = try ServerURL("https://example.com/base/")
    #expect(url.http("/rest/v1/rpc/pull") == "https://example.com/base/rest/v1/rpc/pull")
    #expect(url.webSocket("/realtime/v1/websocket") == "wss://example.com/base/realtime/v1/websocket")
  }

  @Test func itsDescriptionShowsHostAndPortOnly() throws {
    #expect("\(try ServerURL("wss://example.com/secret/path?apikey=secret", for: .webSocket))" == "example.com:443")
    #expect(try ServerURL("http://[::1]:54321/x").label == "[::1]:54321")
    #expect(try ServerURL("https://example.com:443").authority == "example.com")
    #expect(try ServerURL("https://example.com:80").authority == "example.com:80")
  }
}
