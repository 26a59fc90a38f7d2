import HTTPClient
import HostKit
import Testing

@Suite(.enabled(if: TLSServer.isAvailable, "needs the program openssl")) struct HTTP2Tests {
  private func with(
    _ action: @escaping @Sendable (Int, UInt32) -> HTTP2Server.Action,
    _ body: (_ send: (String) async throws -> String, HTTP2Server) async throws -> Void
  ) async throws {
    let server = try HTTP2Server(action)
    let client = CurlHTTPClient(.init(authorityFile: server.authorityFile))
    func send(_ path: String) async throws -> String {
      while true {
        do {
          let request = HTTPRequest(method: "POST", url: "https://localhost:\(server.port)\(path)", body: [0x78])
          return String(decoding: try await client.send(request).body, as: UTF8.self)
        } catch let error as HTTPError where error.kind == .unreachable {
          // The program does not listen yet.
          await Task.yield()
        }
      }
    }
    let outcome: Result<Void, any Error>
    do { outcome = .success(try await body(send, server)) } catch { outcome = .failure(error) }
    await client.shutdown()
    server.stop()
    try outcome.get()
  }

  @Test func whereItIsOfferedItIsUsedAndOneConnectionServesAll() async throws {
    try await with({ .answer("\($0)/\($1)") }) { send, server in
      let first = try await send("/a")
      let second = try await send("/b")
      #expect(first == "1/1")
      #expect(second == "1/3")
    }
  }

  @Test(arguments: [HTTP2Server.Action.goAway(lastStream: 1), .refuse])
  func aRequestThatWasNotProcessedIsSentAgain(ending: HTTP2Server.Action) async throws {
    try await with({ connection, stream in
      connection == 1 && stream == 3 ? ending : .answer("\(connection)/\(stream)")
    }) { send, server in
      let first = try await send("/a")
      let second = try await send("/b")
      #expect(first == "1/1")
      #expect(second == "2/1")
      #expect(server.requests == ["1/1", "1/3", "2/1"])
    }
  }
}
