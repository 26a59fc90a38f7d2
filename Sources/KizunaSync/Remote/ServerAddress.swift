import HTTPClient
import HostKit

/// Remembers the address that the server (or the proxy before it) was last reached at.
final class ServerAddress: Sendable {
  private let address = Locked<IPAddress?>(nil)

  var current: IPAddress? { address.withLock { $0 } }

  /// A server that is configured by its number, or as this machine, is known from the start.
  func configure(url: String?) {
    let known = url.flatMap { url -> IPAddress? in
      guard let server = try? ServerURL(url) else { return nil }
      return server.isLoopback ? IPAddress("127.0.0.1") : IPAddress(server.host)
    }
    address.withLock { $0 = known }
  }

  func note(_ response: HTTPResponse) {
    guard let peer = response.peerAddress.flatMap({ IPAddress($0) }) else { return }
    address.withLock { $0 = peer }
  }
}

/// Passes requests on and notes who answered.
struct PeerNotingTransport: HTTPTransport {
  let inner: any HTTPTransport
  let server: ServerAddress

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let response = try await inner.send(request)
    server.note(response)
    return response
  }
}
