import Glibc
import HTTPClient
import HostKit
import Testing

@Suite(.enabled(if: TLSServer.isAvailable, "needs the program openssl")) struct TLSTests {
  private func answer(
    _ url: String, trusting authorityFile: String?, connectTimeout: UInt64 = .seconds(10)
  ) async -> Result<HTTPResponse, HTTPError> {
    let client = CurlHTTPClient(.init(authorityFile: authorityFile))
    let result: Result<HTTPResponse, HTTPError>
    do {
      result = .success(try await client.send(HTTPRequest(method: "GET", url: url, connectTimeout: connectTimeout)))
    } catch {
      result = .failure(error as? HTTPError ?? HTTPError(.other, "\(error)"))
    }
    await client.shutdown()
    return result
  }

  private func failure(_ result: Result<HTTPResponse, HTTPError>) -> HTTPError? {
    if case .failure(let error) = result { error } else { nil }
  }

  @Test func aCertificateIsTrustedForItsNameByItsAuthorityOnly() async throws {
    let server = try TLSServer()
    defer { server.stop() }
    let right = await answer("https://localhost:\(server.port)/", trusting: server.authorityFile)
    #expect(try right.get().status == 200)
    let wrongName = await answer("https://127.0.0.1:\(server.port)/", trusting: server.authorityFile)
    #expect(
      failure(wrongName) == HTTPError(.tls, "the certificate of 127.0.0.1:\(server.port) is for another name"))
    let unknown = await answer("https://localhost:\(server.port)/", trusting: nil)
    #expect(
      failure(unknown)
        == HTTPError(
          .tls,
          "the certificate of localhost:\(server.port) is signed by an unknown authority; to trust that one, name its file as authorityFile"
        ))
    // A pipe that nobody writes to must not keep the thread of all requests waiting.
    let pipe = "/tmp/kizuna-authorities-\(getpid())"
    #expect(mkfifo(pipe, 0o600) == 0)
    defer { unlink(pipe) }
    for file in ["/nowhere/ca.pem", pipe, "/dev/zero", "/tmp"] {
      let unreadable = await answer("https://localhost:\(server.port)/", trusting: file)
      #expect(failure(unreadable)?.kind == .tls)
      #expect(failure(unreadable)?.message.contains("certificate authorities cannot be read") == true)
    }
  }

  @Test func olderProtocolsAreRefused() async throws {
    let server = try TLSServer(["-www", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
    defer { server.stop() }
    let result = await answer("https://localhost:\(server.port)/", trusting: server.authorityFile)
    #expect(failure(result)?.kind == .tls)
    #expect(
      failure(result)?.message.hasPrefix("no TLS connection to localhost:\(server.port) could be agreed; ") == true)
  }

  @Test func aServerWithoutTLSIsNotTalkedToInPlainText() async throws {
    let server = RawServer { _, connection in
      connection.answer(200, "x")
      return .close
    }
    defer { server.stop() }
    let result = await answer(
      "https://127.0.0.1:\(server.port)/", trusting: nil, connectTimeout: .milliseconds(100))
    #expect(failure(result) == HTTPError(.timeout, "no connection to 127.0.0.1:\(server.port) within 100 ms"))
    #expect(server.received.isEmpty)
  }
}
