import HostKit
import Testing

@testable import SupabaseRealtime

/// Answers to the upgrade that are no WebSocket.
@Suite(.timeLimit(.minutes(5)))
struct RefusedUpgradeTests {
  @Test(arguments: [
    (403, "", ""), (404, #"{"error":"Tenant not found"}"#, ""), (429, "slow down", "retry-after: 17\r\n"),
    (302, "", "location: http://127.0.0.1:1/\r\n"), (500, "x", ""), (200, "hello", ""),
  ])
  func aRefusalCarriesStatusTextAndRetryAfter(status: Int, body: String, header: String) async {
    let server = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write("HTTP/1.1 \(status) Some Reason\r\n\(header)content-length: \(body.utf8.count)\r\n\r\n\(body)")
      peer.drain()
    }
    let probe = TransportProbe(server.url)
    #expect(
      await probe.rest() == [
        .refused(status: status, retryAfterSeconds: header.contains("17") ? 17 : nil, body: body.isEmpty ? nil : body)
      ])
  }

  @Test func aPeerThatHangsUpDuringTheUpgradeIsALostConnection() async {
    let server = RawServer { peer in _ = peer.readRequest() }
    #expect(await TransportProbe(server.url).rest().map(\.failureKind) == [.connectionLost])
  }

  @Test func anAnswerThatIsNotHTTPIsALostConnection() async {
    let server = RawServer { peer in
      _ = peer.readRequest()
      peer.write("SSH-2.0-OpenSSH_9.2\r\n\r\n\r\n")
      peer.drain()
    }
    var request = RealtimeTransportRequest(url: server.url)
    request.handshakeTimeout = .milliseconds(300)
    let events = await TransportProbe(request).rest()
    #expect(events.count == 1)
    #expect(events.first?.failureKind != nil)
  }

  @Test func aWrongAcceptKeyIsAFailure() async {
    let server = RawServer { peer in
      guard peer.readRequest() != nil else { return }
      peer.write(RawPeer.acceptance(of: "Sec-WebSocket-Key: another\r\n"))
      peer.drain()
    }
    #expect(await TransportProbe(server.url).rest().map(\.failureKind) == [.connectionLost])
  }
}
