import HTTPClient
import HostKit
import PhoenixChannels
import SupabaseRealtime
import Testing

@testable import LocalStack

/// The client transport and the server over TLS, with an authority made for the test.
@Suite(.timeLimit(.minutes(5)))
struct TLSTests {
  /// - Parameter names: what the server's certificate is for.
  private func withServer(
    names: String, _ body: (StackAssembly, TestAuthority) async throws -> Void
  ) async throws {
    let authority = try await TestAuthority(names: names)
    var options = StackServer.Options()
    options.tls = (authority.certificate, authority.key)
    let stack = try await StackAssembly.start(options, rules: RealtimeSocket.Rules(verifier: PlainVerifier())) { _ in
      EchoHandler()
    }
    do {
      try await body(stack, authority)
    } catch {
      await stack.stop()
      try await authority.remove()
      throw error
    }
    await stack.stop()
    try await authority.remove()
  }

  /// The first event of an attempt, as `opened` or the kind and text of the failure.
  private func attempt(
    _ stack: StackAssembly, host: String, trusting roots: LibwebsocketsTransport.TrustRoots
  ) async -> (kind: String, text: String) {
    let key = PercentCoding.encode(PlainVerifier.token(role: "anon"))
    let url = "wss://\(host):\(stack.server.port)/realtime/v1/websocket?vsn=2.0.0&apikey=\(key)"
    let transport = LibwebsocketsTransport(trustRoots: roots)
    return await withCheckedContinuation { done in
      let hasAnswered = Locked(false)
      LwsLoop.shared.run {
        let connection = Locked<(any RealtimeTransportConnection)?>(nil)
        let made = transport.connect(RealtimeTransportRequest(url: url)) { event in
          let isFirst = hasAnswered.withLock { answered -> Bool in
            defer { answered = true }
            return !answered
          }
          guard isFirst else { return }
          switch event {
          case .opened:
            connection.withLock { $0 }?.close(code: 1000, reason: "")
            done.resume(returning: ("opened", ""))
          case .failed(let failure): done.resume(returning: (failure.kind.rawValue, failure.message))
          default: done.resume(returning: ("\(event)", ""))
          }
        }
        connection.withLock { $0 = made }
      }
    }
  }

  @Test func theRightNameOfATrustedAuthorityIsAccepted() async throws {
    try await withServer(names: "DNS:localhost,IP:127.0.0.1") { stack, authority in
      let roots = LibwebsocketsTransport.TrustRoots.systemAnd(file: authority.authority)
      for host in ["localhost", "127.0.0.1"] {
        #expect(await attempt(stack, host: host, trusting: roots).kind == "opened")
      }
    }
  }

  @Test func framesGoBothWaysOverTLS() async throws {
    try await withServer(names: "DNS:localhost") { stack, authority in
      let client = HubClient(
        "wss://localhost:\(stack.server.port)/socket/websocket", .v2, key: PlainVerifier.token(role: "anon"),
        over: LibwebsocketsTransport(trustRoots: .systemAnd(file: authority.authority)))
      #expect(await client.next() == .opened)
      #expect(await client.joined("realtime:kizunasync:todos", broadcast: ["self": true, "ack": true]))
      // Larger than a TLS record and than the library's buffers.
      let text = JSONValue.string(String(repeating: "x", count: 500_000))
      client.send(
        PhoenixFrame(
          joinRef: "1", ref: "2", topic: "realtime:kizunasync:todos", event: "broadcast",
          ["type": "broadcast", "event": "a", "payload": ["t": text]]))
      #expect(await client.frame()?.json?["payload"]?["t"] == text)
      #expect(await client.frame()?.ref == "2")
      client.close()
      #expect(await client.next() == .ended("closed 1000"))
    }
  }

  @Test func httpsIsServedToo() async throws {
    try await withServer(names: "DNS:localhost") { stack, authority in
      var settings = CurlHTTPClient.Settings()
      settings.authorityFile = authority.authority
      let client = CurlHTTPClient(settings)
      for _ in 0..<2 {
        let response = try await client.send(
          HTTPRequest(
            method: "POST", url: "https://localhost:\(stack.server.port)/x", body: [UInt8](repeating: 1, count: 300_000)
          ))
        #expect(String(decoding: response.body, as: UTF8.self) == "POST /x  300000")
      }
    }
  }

  @Test func anotherNameIsRefusedWithTheReason() async throws {
    try await withServer(names: "DNS:other.example") { stack, authority in
      let result = await attempt(stack, host: "localhost", trusting: .systemAnd(file: authority.authority))
      #expect(result.kind == "tls")
      #expect(result.text.lowercased().contains("hostname mismatch"))
    }
  }

  @Test func anUnknownAuthorityIsRefusedWithTheReason() async throws {
    try await withServer(names: "DNS:localhost") { stack, _ in
      let result = await attempt(stack, host: "localhost", trusting: .system)
      #expect(result.kind == "tls")
      #expect(result.text.contains("certificate"))
      #expect(result.text.contains("localhost:\(stack.server.port)"))
    }
  }

  @Test func trustRootsThatCannotBeReadAreNamed() async throws {
    try await withServer(names: "DNS:localhost") { stack, _ in
      let result = await attempt(stack, host: "localhost", trusting: .systemAnd(file: "/does/not/exist.pem"))
      #expect(result.kind == "tls")
      #expect(result.text.contains("/does/not/exist.pem"))
    }
  }

  @Test func aServerWithoutTLSIsAFailureOfTLS() async throws {
    let plain = try await StackAssembly.start(
      StackServer.Options(), rules: RealtimeSocket.Rules(verifier: PlainVerifier())
    ) { _ in EchoHandler() }
    #expect(await attempt(plain, host: "localhost", trusting: .system).kind == "tls")
    await plain.stop()
  }

  @Test func aCertificateThatCannotBeReadStopsTheStart() async throws {
    var options = StackServer.Options()
    options.tls = ("/does/not/exist.pem", "/does/not/exist.key")
    let given = options
    await #expect(throws: StackServerError.certificate("/does/not/exist.pem")) {
      _ = try await StackAssembly.start(given, rules: RealtimeSocket.Rules(verifier: PlainVerifier())) { _ in
        EchoHandler()
      }
    }
  }
}
