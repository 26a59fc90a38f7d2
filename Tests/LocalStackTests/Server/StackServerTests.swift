import HTTPClient
import HostKit
import SupabaseRealtime
import Testing

@testable import LocalStack

/// Answers every request with what it got.
struct EchoHandler: StackHandler {
  func handle(_ request: StackRequest) async -> StackResponse {
    if request.path == "/large" {
      return StackResponse(status: 200, body: [UInt8](repeating: 120, count: Int(request.query) ?? 0))
    }
    let text = "\(request.method) \(request.path) \(request.query) \(request.body.count)"
    return StackResponse(status: 200, headers: [StackHeader("x-echo", "yes")], body: Array(text.utf8))
  }
}

@Suite(.timeLimit(.minutes(5)))
struct StackServerTests {
  private func start(port: UInt16 = 0) async throws -> StackAssembly {
    var options = StackServer.Options()
    options.port = port
    return try await StackAssembly.start(options, rules: RealtimeSocket.Rules(verifier: PlainVerifier())) { _ in
      EchoHandler()
    }
  }

  @Test func requestsAreAnsweredOnAKeptConnection() async throws {
    let stack = try await start()
    let client = CurlHTTPClient()
    for round in 0..<5 {
      let response = try await client.send(
        HTTPRequest(
          method: "POST", url: "http://127.0.0.1:\(stack.server.port)/rest/v1/rpc/pull?n=\(round)", body: [1, 2, 3]))
      #expect(response.status == 200)
      #expect(response.header("x-echo") == "yes")
      #expect(response.header("date") != nil)
      #expect(String(decoding: response.body, as: UTF8.self) == "POST /rest/v1/rpc/pull n=\(round) 3")
    }
    await stack.stop()
  }

  /// A request that is no handshake is answered as such before anything in it is judged, and logged as nothing else.
  @Test func aRefusedHandshakeIsLoggedWithTheStatusThatIsSent() async throws {
    let statuses = Locked<[JSONValue]>([])
    let log = HostLog(minimum: .info) { _, event, fields in
      if event == "realtime.refused" { statuses.withLock { $0 += fields.map(\.1) } }
    }
    let stack = try await StackAssembly.start(
      StackServer.Options(), rules: RealtimeSocket.Rules(verifier: PlainVerifier()), log: log
    ) { _ in EchoHandler() }
    let handshake = [
      HTTPHeader("Upgrade", "websocket"), HTTPHeader("Connection", "Upgrade"),
      HTTPHeader("Sec-WebSocket-Version", "13"),
      HTTPHeader("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    for left in 0...2 {
      var headers = handshake
      if left > 0 { headers.remove(at: left - 1) }
      let response = try await CurlHTTPClient().send(
        HTTPRequest(
          method: "GET", url: "http://127.0.0.1:\(stack.server.port)/realtime/v1/websocket?vsn=9.0.0&apikey=x",
          headers: headers))
      #expect(response.status == (left == 0 ? 403 : 400))
      #expect(statuses.withLock { $0 } == [403])
    }
    await stack.stop()
  }

  @Test func largeBodiesGoBothWays() async throws {
    let stack = try await start()
    let client = CurlHTTPClient()
    let size = 8 << 20
    let up = try await client.send(
      HTTPRequest(
        method: "POST", url: "http://127.0.0.1:\(stack.server.port)/up", body: [UInt8](repeating: 1, count: size)))
    #expect(String(decoding: up.body, as: UTF8.self) == "POST /up  \(size)")
    let down = try await client.send(
      HTTPRequest(method: "GET", url: "http://127.0.0.1:\(stack.server.port)/large?\(size)"))
    #expect(down.body.count == size)
    await stack.stop()
  }

  @Test func aBodyOverTheLimitIsRefused() async throws {
    let stack = try await start()
    let response = try await CurlHTTPClient().send(
      HTTPRequest(
        method: "POST", url: "http://127.0.0.1:\(stack.server.port)/up",
        headers: [HTTPHeader("expect", "100-continue")],
        body: [UInt8](repeating: 1, count: (64 << 20) + 1)))
    #expect(response.status == 413)
    await stack.stop()
  }

  @Test func aPortInUseIsNamed() async throws {
    let stack = try await start()
    let port = stack.server.port
    await #expect(throws: StackServerError.addressInUse("127.0.0.1:\(port)")) { _ = try await start(port: port) }
    await stack.stop()
    // Free again.
    let again = try await start(port: port)
    #expect(again.server.port == port)
    await again.stop()
  }

  @Test func anAddressOfAnotherMachineIsRefused() async throws {
    var options = StackServer.Options()
    options.host = "192.0.2.1"
    let given = options
    await #expect(throws: StackServerError.invalidAddress("192.0.2.1")) {
      _ = try await StackAssembly.start(given, rules: RealtimeSocket.Rules(verifier: PlainVerifier())) { _ in
        EchoHandler()
      }
    }
  }

  @Test func severalServersLiveSideBySide() async throws {
    var stacks: [StackAssembly] = []
    for _ in 0..<3 { stacks.append(try await start()) }
    let client = CurlHTTPClient()
    for stack in stacks {
      let response = try await client.send(
        HTTPRequest(method: "GET", url: "http://127.0.0.1:\(stack.server.port)/"))
      #expect(response.status == 200)
    }
    for stack in stacks { await stack.stop() }
  }
}
