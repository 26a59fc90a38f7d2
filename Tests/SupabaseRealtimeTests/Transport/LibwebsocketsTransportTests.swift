import HostKit
import Testing

@testable import SupabaseRealtime

@Suite(.timeLimit(.minutes(5)))
struct LibwebsocketsTransportTests {
  @Test func messagesGoBothWays() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      while let frame = peer.readFrame(), frame.opcode < 8 { peer.write(RawPeer.frame(frame.opcode, frame.payload)) }
    }
    let probe = TransportProbe(server.url)
    probe.send("before it is open")
    #expect(await probe.next() == .opened)
    #expect(await probe.next() == .text("before it is open"))
    probe.call { $0.send(.binary([0, 1, 255])) }
    #expect(await probe.next() == .binary([0, 1, 255]))
    let long = String(repeating: "é", count: 100_000)
    probe.send(long)
    #expect(await probe.next() == .text(long))
    probe.close(code: 1000, reason: "enough")
    #expect(await probe.rest() == [.closed(code: 1000, reason: "enough")])
  }

  @Test func theUpgradeRequestOffersNothingBeyondWebSocket() async throws {
    let request = Locked("")
    let server = RawServer { peer in
      guard let text = peer.readRequest() else { return }
      request.withLock { $0 = text }
      peer.write(RawPeer.acceptance(of: text))
      peer.drain()
    }
    let probe = TransportProbe(
      RealtimeTransportRequest(
        url: "ws://127.0.0.1:\(server.port)/socket/websocket?vsn=2.0.0", headers: [("x-api-key", "a-key")]))
    #expect(await probe.next() == .opened)
    probe.close()
    _ = await probe.rest()
    let lines = request.withLock { $0 }.split(separator: "\r\n").map(String.init)
    #expect(lines.first == "GET /socket/websocket?vsn=2.0.0 HTTP/1.1")
    #expect(lines.contains("Host: 127.0.0.1:\(server.port)"))
    #expect(lines.contains { $0.lowercased() == "x-api-key: a-key" })
    let names = lines.dropFirst().compactMap { $0.split(separator: ":").first?.lowercased() }
    #expect(!names.contains("sec-websocket-extensions"))
    #expect(!names.contains("sec-websocket-protocol"))
    #expect(!names.contains("origin"))
  }

  /// D33.
  @Test func framesInTheSegmentOfThe101AreDelivered() async {
    let server = RawServer { peer in
      guard let request = peer.readRequest() else { return }
      peer.write(
        RawPeer.acceptance(of: request) + RawPeer.frame(1, Array("first".utf8)) + RawPeer.frame(2, [1, 2, 3])
          + RawPeer.frame(1, Array("third".utf8)))
      peer.drain()
    }
    let probe = TransportProbe(server.url)
    #expect(await probe.next() == .opened)
    #expect(await probe.next() == .text("first"))
    #expect(await probe.next() == .binary([1, 2, 3]))
    #expect(await probe.next() == .text("third"))
    probe.close()
    _ = await probe.rest()
  }

  @Test func fragmentsAreJoinedWhereverTheyAreCut() async {
    let text = Array("grüße – こんにちは".utf8)
    let server = RawServer { peer in
      peer.acceptUpgrade()
      for cut in 0...text.count {
        peer.write(
          RawPeer.frame(1, Array(text[..<cut]), isFinal: false) + RawPeer.frame(9, [7])
            + RawPeer.frame(0, Array(text[cut...])))
      }
      // One frame, byte by byte.
      for byte in RawPeer.frame(1, text) { peer.write([byte]) }
      peer.drain()
    }
    let probe = TransportProbe(server.url)
    #expect(await probe.next() == .opened)
    for _ in 0...(text.count + 1) { #expect(await probe.next() == .text("grüße – こんにちは")) }
    probe.close()
    _ = await probe.rest()
  }

  @Test func anEmptyMessageIsAMessage() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      peer.write(RawPeer.frame(1, []) + RawPeer.frame(2, []) + RawPeer.frame(1, Array("x".utf8)))
      peer.drain()
    }
    let probe = TransportProbe(server.url)
    #expect(await probe.next() == .opened)
    #expect(await probe.next() == .text(""))
    #expect(await probe.next() == .binary([]))
    #expect(await probe.next() == .text("x"))
    probe.close()
    _ = await probe.rest()
  }

  @Test func aTooLargeMessageIsDroppedAndTheConnectionLives() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      peer.write(RawPeer.frame(1, [UInt8](repeating: 65, count: 300_000)) + RawPeer.frame(1, Array("small".utf8)))
      peer.drain()
    }
    var request = RealtimeTransportRequest(url: server.url)
    request.maximumMessageBytes = 100_000
    let probe = TransportProbe(request)
    #expect(await probe.next() == .opened)
    #expect(await probe.next() == .messageTooLarge(bytes: 300_000))
    #expect(await probe.next() == .text("small"))
    probe.close()
    _ = await probe.rest()
  }

  /// A peer that never ends its message is told 1009 and left, however it cuts it up.
  @Test(arguments: [0, 1, 10_000])
  func aMessageWithoutAnEndClosesTheConnection(fragmentBytes: Int) async {
    let (closes, close) = AsyncStream.makeStream(of: RawPeer.Frame?.self)
    let server = RawServer { peer in
      peer.acceptUpgrade()
      let ended = Signal()
      HostThread.detach(name: "raw-reader") {
        let frame = peer.readFrame()
        peer.write(RawPeer.frame(8, frame?.payload ?? []))
        close.yield(frame)
        ended.raise()
      }
      peer.writeEndlessly(fragmentBytes)
      ended.wait()
    }
    let probe = TransportProbe(Self.endlessRequest(server, closeTimeout: .seconds(60)))
    #expect(await probe.rest().map(\.failureKind) == [nil, .endlessMessage])
    var iterator = closes.makeAsyncIterator()
    let told = RawPeer.Frame(opcode: 8, payload: [3, 241] + Array("message too big".utf8))
    #expect(await iterator.next() == .some(told))
  }

  /// Nor does it hold the connection open when it does not answer the close.
  @Test func aMessageWithoutAnEndIsNotListenedToForLong() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      peer.writeEndlessly(10_000)
    }
    let probe = TransportProbe(Self.endlessRequest(server, closeTimeout: .milliseconds(300)))
    #expect(await probe.rest().map(\.failureKind) == [nil, .endlessMessage])
  }

  private static func endlessRequest(_ server: RawServer, closeTimeout: UInt64) -> RealtimeTransportRequest {
    var request = RealtimeTransportRequest(url: server.url, closeTimeout: closeTimeout)
    request.maximumMessageBytes = 1_000
    request.endlessMessageBytes = 20_000
    return request
  }

  @Test func aPingIsAnsweredByAPong() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      while let frame = peer.readFrame() {
        if frame.opcode == 9 { peer.write(RawPeer.frame(10, frame.payload)) }
        if frame.opcode == 8 { return }
      }
    }
    let probe = TransportProbe(server.url)
    #expect(await probe.next() == .opened)
    probe.call { $0.ping() }
    #expect(await probe.next() == .pong)
    probe.close()
    _ = await probe.rest()
  }

  @Test(arguments: [nil, 999, 1000, 1001, 1011, 1012, 4001] as [UInt16?])
  func aCloseOfThePeerIsReported(code: UInt16?) async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      let payload = code.map { [UInt8($0 >> 8), UInt8($0 & 0xFF)] + Array("bye".utf8) } ?? []
      peer.write(RawPeer.frame(8, payload))
      peer.drain()
    }
    let probe = TransportProbe(server.url)
    // libwebsockets does not tell 1012, nor what is no code.
    let told = code == 1012 || code == 999 ? nil : code
    #expect(await probe.rest() == [.opened, .closed(code: told, reason: code == nil ? "" : "bye")])
  }

  @Test func anEndWithoutACloseFrameIsALostConnection() async {
    let server = RawServer { peer in peer.acceptUpgrade() }
    let probe = TransportProbe(server.url)
    #expect(await probe.next() == .opened)
    #expect(await probe.next()?.failureKind == .connectionLost)
    #expect(await probe.next() == nil)
  }

  // MARK: Reaching the peer

  @Test func aPortNobodyListensOnIsUnreachable() async {
    let port = RawServer(script: nil).port  // closed again at once
    let events = await TransportProbe("ws://127.0.0.1:\(port)/").rest()
    #expect(events.map(\.failureKind) == [.unreachable])
  }

  @Test func aNameThatDoesNotExistIsUnresolved() async {
    let events = await TransportProbe("wss://does-not-exist.invalid/").rest()
    #expect(events.map(\.failureKind) == [.unresolved])
  }

  @Test func localhostIsReachedWhicheverFamilyListens() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      peer.drain()
    }
    for _ in 0..<2 {
      let probe = TransportProbe("ws://localhost:\(server.port)/")
      #expect(await probe.next() == .opened)
      probe.close()
      _ = await probe.rest()
    }
  }

  @Test(arguments: [
    "http://x/", "ws://", "ws://user@host/", "ws://host:0/", "ws://host:99999/", "wss://[::1]/", "",
    // Plain text to a host that is not near.
    "ws://example.com/", "ws://8.8.8.8/",
  ])
  func anAddressThatCannotBeUsedIsRefused(url: String) async {
    #expect(await TransportProbe(url).rest().map(\.failureKind) == [.invalidURL])
  }

  // MARK: Deadlines

  @Test func aPeerThatNeverAnswersTheUpgradeTimesOut() async {
    let server = RawServer { $0.drain() }
    var request = RealtimeTransportRequest(url: server.url)
    request.handshakeTimeout = .milliseconds(200)
    #expect(await TransportProbe(request).rest().map(\.failureKind) == [.timeout])
  }

  @Test func aPeerThatNeverAnswersTheCloseIsCutOff() async {
    let ended = Observed(false)
    let server = RawServer { peer in
      peer.acceptUpgrade()
      peer.drain()
      ended.change { $0 = true }
    }
    var request = RealtimeTransportRequest(url: server.url)
    request.closeTimeout = .milliseconds(200)
    let probe = TransportProbe(request)
    #expect(await probe.next() == .opened)
    probe.close(code: 1000, reason: "")
    #expect(await probe.rest() == [.closed(code: 1000, reason: "")])
    // The descriptor is closed with the final event, so the peer sees the end.
    await ended.wait { $0 }
  }

  @Test func aPeerThatTakesNoDataTimesOut() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      while true { if peer.descriptor < 0 { return } else { usleepABit() } }
    }
    var request = RealtimeTransportRequest(url: server.url)
    request.writeTimeout = .milliseconds(300)
    let probe = TransportProbe(request)
    #expect(await probe.next() == .opened)
    let megabyte = String(repeating: "x", count: 1 << 20)
    for _ in 0..<7 { probe.send(megabyte) }
    #expect(await probe.next()?.failureKind == .timeout)
    #expect(await probe.next() == nil)
  }

  @Test func moreThanTheQueueHoldsEndsTheConnection() async {
    let server = RawServer { peer in
      peer.acceptUpgrade()
      while true { if peer.descriptor < 0 { return } else { usleepABit() } }
    }
    let probe = TransportProbe(server.url)
    #expect(await probe.next() == .opened)
    let megabyte = String(repeating: "x", count: 1 << 20)
    for _ in 0..<24 { probe.send(megabyte) }
    #expect(await probe.next()?.failureKind == .connectionLost)
    #expect(await probe.next() == nil)
  }

  // MARK: Stopping at every step

  @Test func closingBeforeAnythingHappenedEndsTheAttempt() async {
    let server = RawServer { $0.drain() }
    let probe = TransportProbe(server.url)
    probe.close(code: 1000, reason: "changed my mind")
    #expect(await probe.rest() == [.closed(code: 1000, reason: "changed my mind")])
  }

  @Test func closingDuringTheUpgradeEndsTheAttempt() async {
    let asked = Observed(false)
    let server = RawServer { peer in
      _ = peer.readRequest()
      asked.change { $0 = true }
      peer.drain()
    }
    let probe = TransportProbe(server.url)
    await asked.wait { $0 }
    probe.close()
    #expect(await probe.rest() == [.closed(code: 1000, reason: "")])
  }

  @Test func closingWhileTheNameIsResolvedEndsTheAttemptAtOnce() async {
    let server = RawServer { $0.drain() }
    let probe = TransportProbe("ws://localhost:\(server.port)/stop-while-resolving")
    probe.close()
    #expect(await probe.rest() == [.closed(code: 1000, reason: "")])
  }

  @Test func closingJustAfterOpeningSendsWhatWasQueuedFirst() async {
    let frames = Locked<[RawPeer.Frame]>([])
    let server = RawServer { peer in
      peer.acceptUpgrade()
      while let frame = peer.readFrame() {
        frames.withLock { $0.append(frame) }
        if frame.opcode == 8 {
          peer.write(RawPeer.frame(8, frame.payload))
          return
        }
      }
    }
    let probe = TransportProbe(RealtimeTransportRequest(url: server.url, closeTimeout: .seconds(30)))
    #expect(await probe.next() == .opened)
    probe.call { connection in
      connection.send(.text("last words"))
      connection.close(code: 1001, reason: "going")
      connection.send(.text("too late"))
    }
    #expect(await probe.rest() == [.closed(code: 1001, reason: "going")])
    #expect(
      frames.withLock { $0 } == [
        RawPeer.Frame(opcode: 1, payload: Array("last words".utf8)),
        RawPeer.Frame(opcode: 8, payload: [3, 233] + Array("going".utf8)),
      ])
  }

  @Test func descriptorsAreGivenBack() async {
    let server = RawServer { peer in
      guard let request = peer.readRequest() else { return }
      if request.contains("refuse") {
        peer.write("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
      } else {
        peer.write(RawPeer.acceptance(of: request))
      }
      peer.drain()
    }
    func round() async {
      let good = TransportProbe(server.url)
      #expect(await good.next() == .opened)
      good.close()
      _ = await good.rest()
      _ = await TransportProbe(server.url + "&refuse=1").rest()
      let early = TransportProbe(server.url)
      early.close()
      _ = await early.rest()
    }
    await round()
    // Other tests run beside this one, so sockets to this server are counted, not all descriptors.
    for _ in 0..<20 { await round() }
    await lookAgain(while: { openSockets(to: server.port) > 0 })
  }
}
