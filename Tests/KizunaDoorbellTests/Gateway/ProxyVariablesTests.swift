import CLinux
import Glibc
import HTTPClient
import HostKit
import KizunaDoorbell
import LocalStack
import PhoenixChannels
import SupabaseRealtime
import SyncServer
import Testing

/// F39: one set of variables for requests and WebSocket alike. A proxy between both clients and the development server
/// counts the tunnels it is asked for.
@Suite(.timeLimit(.minutes(5))) struct ProxyVariablesTests {
  /// Opens tunnels to one port, whatever address is asked for, and remembers what was asked.
  private final class TunnelProxy: Sendable {
    let port: UInt16
    private let listener: Int32
    private let asked = Locked<[String]>([])

    var requests: [String] { asked.withLock { $0 } }

    init(to target: UInt16) throws {
      (listener, port) = try #require(Self.listen())
      let (listener, asked) = (listener, asked)
      HostThread.detach(name: "proxy") {
        // Closed here alone: by the time this thread comes back to `accept`, the number might be another test's listener.
        defer { close(listener) }
        while case let client = kd_accept_closed_on_exec(listener), client >= 0 {
          HostThread.detach(name: "tunnel") {
            defer { close(client) }
            guard let request = Self.readRequest(client) else { return }
            asked.withLock { $0.append(String(request.prefix { $0 != "\r" })) }
            guard request.hasPrefix("CONNECT "), let server = Self.connect(to: target) else { return }
            defer { close(server) }
            _ = send(client, "HTTP/1.1 200 OK\r\n\r\n", 19, Int32(MSG_NOSIGNAL))
            Self.pump(client, server)
          }
        }
      }
    }

    func stop() {
      shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
      address.sin_port = port.bigEndian
      return address
    }

    private static func socketWith(
      _ port: UInt16, _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32? {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      var address = loopback(port)
      let size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(descriptor, $0, size) }
      }
      if result == 0 { return descriptor }
      close(descriptor)
      return nil
    }

    private static func listen() -> (Int32, UInt16)? {
      guard let descriptor = socketWith(0, { Glibc.bind($0, $1, $2) }), Glibc.listen(descriptor, 16) == 0 else {
        return nil
      }
      var address = sockaddr_in()
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let named = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
      }
      return named == 0 ? (descriptor, UInt16(bigEndian: address.sin_port)) : nil
    }

    private static func connect(to port: UInt16) -> Int32? { socketWith(port) { Glibc.connect($0, $1, $2) } }

    private static func readRequest(_ descriptor: Int32) -> String? {
      var request: [UInt8] = []
      var byte: UInt8 = 0
      while !request.suffix(4).elementsEqual([13, 10, 13, 10]) {
        guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
        request.append(byte)
      }
      return String(decoding: request, as: UTF8.self)
    }

    /// Until either side ends.
    private static func pump(_ one: Int32, _ two: Int32) {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        var entries = [one, two].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&entries, 2, -1) > 0 else { continue }
        for (from, to) in [(0, two), (1, one)] where entries[from].revents != 0 {
          let count = recv(entries[from].fd, &buffer, buffer.count, 0)
          guard count > 0 else { return }
          var sent = 0
          while sent < count {
            let now = buffer.withUnsafeBytes { send(to, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL)) }
            guard now > 0 else { return }
            sent += now
          }
        }
      }
    }
  }

  private struct Token: RealtimeCredentials {
    let text: String
    func accessToken(refresh: Bool) async throws -> String? { text }
  }

  /// Three requests and a WebSocket with these variables.
  /// - Returns: what the proxy was asked for.
  private func tunnels(
    host: String, includesLoopback: Bool, _ variables: (String) -> [String: String]
  ) async throws -> [String] {
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable()], users: [LocalStackConfiguration.User(email: "ann@example.com", password: "pw")])
    )
    let proxy = try TunnelProxy(to: stack.port)
    let rule = ProxyRule(
      environment: variables("http://user:pw@127.0.0.1:\(proxy.port)"), includesLoopback: includesLoopback)
    let url = "http://\(host):\(stack.port)"
    let http = CurlHTTPClient(CurlHTTPClient.Settings(proxy: rule))
    for _ in 0..<3 {
      let answer = try await http.send(HTTPRequest(method: "GET", url: url + "/auth/v1/health"))
      #expect(answer.status > 0)
    }
    let token = stack.services.tokens.accessToken(
      subject: stack.users[0].id, now: SystemClock.shared.wallMilliseconds / 1_000, lifetime: 600)
    let connection = RealtimeConnection(
      RealtimeConfiguration(url: try ServerURL(url), apiKey: stack.publishableKey),
      transport: LibwebsocketsTransport(proxy: rule), credentials: Token(text: token))
    let subscription = try connection.subscribe(topics: ["kizunasync:todos"]) { _ in }
    connection.start()
    for await status in connection.statusUpdates where status.isReady { break }
    #expect(connection.status.counters.attempts == 1)
    subscription.cancel()
    await connection.stop()
    await http.shutdown()
    proxy.stop()
    try await stack.stop()
    return proxy.requests
  }

  @Test(arguments: ["all_proxy", "ALL_PROXY", "http_proxy"])
  func eachClientOpensOneTunnel(name: String) async throws {
    let asked = try await tunnels(host: "127.0.0.1", includesLoopback: true) { [name: $0] }
    #expect(asked.count == 2)
    for request in asked { #expect(request.hasPrefix("CONNECT 127.0.0.1:")) }
  }

  @Test func neitherGoesThroughAProxyThatIsNotForIt() async throws {
    let variables: [(String) -> [String: String]] = [
      { ["ALL_PROXY": $0, "NO_PROXY": "127.0.0.1"] }, { ["all_proxy": $0, "no_proxy": "*"] },
      { ["http_proxy": $0, "no_proxy": "127.0.0.0/8"] },
      // For encrypted addresses only; and the upper-case name is no variable.
      { ["HTTPS_PROXY": $0] }, { ["HTTP_PROXY": $0] }, { _ in [:] },
    ]
    for variables in variables {
      #expect(try await tunnels(host: "127.0.0.1", includesLoopback: true, variables) == [])
    }
    // Loopback is never proxied unless somebody asks for it.
    #expect(try await tunnels(host: "127.0.0.1", includesLoopback: false) { ["ALL_PROXY": $0] } == [])
  }
}
