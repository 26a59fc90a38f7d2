import Glibc
import HostKit
import Testing

@testable import KizunaSyncTestSupport

/// The proxy itself, between plain sockets.
@Suite(.timeLimit(.minutes(5)))
struct FaultProxyTests {
  /// A server that sends back what it gets and notes how each connection ended.
  private final class Echo: Sendable {
    let server: RawServer
    let endings = Observed<[RawEnding]>([])
    let received = Observed<[UInt8]>([])

    init() {
      let (endings, received) = (endings, received)
      server = RawServer { peer in
        let ending = peer.waitForEnd { bytes in
          received.change { $0 += bytes }
          peer.write(bytes)
        }
        endings.change { $0.append(ending) }
      }
    }
  }

  private func with(_ body: (FaultProxy, Echo) async throws -> Void) async throws {
    let echo = Echo()
    let proxy = try FaultProxy(to: echo.server.port)
    try await body(proxy, echo)
    await proxy.stop()
    #expect(proxy.counts.open == 0)
  }

  private static let hello = Array("hello".utf8)

  @Test func everythingPassesAsItComes() async throws {
    try await with { proxy, echo in
      let port = proxy.port
      let large = [UInt8](repeating: 7, count: 3_000_000)
      let answer = await onThread {
        guard let client = RawClient.connect(to: port) else { return [UInt8]() }
        HostThread.detach(name: "raw-writer") { client.write(large) }
        return client.readExactly(large.count) ?? []
      }
      #expect(answer == large)
      #expect(await proxy.wait { $0.bytesFromServer == large.count && $0.bytesFromClients == large.count })
      #expect(proxy.counts.accepted == 1)
      #expect(proxy.counts.open == 1)
    }
  }

  @Test func endsPassAsTheyCome() async throws {
    try await with { proxy, echo in
      let port = proxy.port
      let ending = await onThread {
        let client = RawClient.connect(to: port)
        client?.write(Self.hello)
        _ = client?.readExactly(5)
        client?.end()
        return client?.waitForEnd()
      }
      #expect(ending == .fin)
      await onThread {
        let client = RawClient.connect(to: port)
        client?.write(Self.hello)
        _ = client?.readExactly(5)
        client?.reset()
      }
      await echo.endings.wait { $0.count == 2 }
      #expect(echo.endings.value == [.fin, .reset])
      #expect(await proxy.wait { $0.open == 0 })
    }
  }

  @Test func connectionsAreRefusedAndThePortStaysOurs() async throws {
    try await with { proxy, echo in
      let port = proxy.port
      for _ in 0..<3 {
        proxy.change { $0.admission = .refused }
        #expect(await onThread { RawClient.connect(to: port) == nil })
        proxy.change { $0.admission = .forwarded }
        let answer = await onThread {
          let client = RawClient.connect(to: port)
          client?.write(Self.hello)
          return client?.readExactly(5)
        }
        #expect(answer == Self.hello)
      }
      #expect(proxy.counts.accepted == 3)
    }
  }

  @Test func heldConnectionsAreServedLater() async throws {
    try await with { proxy, echo in
      proxy.change { $0.admission = .held }
      let port = proxy.port
      let client = try #require(
        await onThread {
          let client = RawClient.connect(to: port)
          client?.write(Self.hello)
          return client
        })
      #expect(proxy.counts.accepted == 0)
      proxy.change { $0.admission = .forwarded }
      #expect(await onThread { client.readExactly(5) } == Self.hello)
    }
  }

  @Test func unansweredConnectionsHearNothing() async throws {
    try await with { proxy, echo in
      proxy.change { $0.admission = .unanswered }
      let port = proxy.port
      let client = try #require(
        await onThread {
          let client = RawClient.connect(to: port)
          client?.write(Self.hello)
          return client
        })
      #expect(await proxy.wait { $0.swallowedFromClients == 5 })
      proxy.change { $0.admission = .forwarded }
      proxy.cut(.fin)
      #expect(await onThread { client.waitForEnd() } == .fin)
      #expect(echo.received.value.isEmpty)
      client.close()
      await onThread { _ = RawClient.connect(to: port) }
      #expect(await proxy.wait { $0.accepted == 2 })
    }
  }

  @Test func admittedOnlyToBeReset() async throws {
    try await with { proxy, echo in
      proxy.change { $0.admission = .reset }
      let port = proxy.port
      let ending = await onThread { RawClient.connect(to: port)?.waitForEnd() }
      // The reset may be quicker than the end of `connect`.
      #expect(ending == .reset || ending == nil)
    }
  }

  @Test(arguments: FaultOrigin.allCases)
  func aSwallowedDirectionIsDeafAndResetLater(origin: FaultOrigin) async throws {
    try await with { proxy, echo in
      let port = proxy.port
      let client = try #require(await onThread { RawClient.connect(to: port) })
      await onThread {
        client.write(Self.hello)
        _ = client.readExactly(5)
        return
      }
      proxy.change { rules in
        if origin == .client { rules.fromClient.flow = .swallowed } else { rules.fromServer.flow = .swallowed }
      }
      _ = await onThread { client.write(Self.hello) }
      #expect(await proxy.wait { origin == .client ? $0.swallowedFromClients == 5 : $0.swallowedFromServer == 5 })
      #expect(echo.received.value.count == (origin == .client ? 5 : 10))
      #expect(proxy.counts.open == 1)
      proxy.change { $0 = FaultRules() }
      #expect(await onThread { client.waitForEnd() } == .reset)
      #expect(await proxy.wait { $0.open == 0 })
    }
  }

  /// An end is swallowed like a byte.
  @Test func aSwallowedEndIsNotTold() async throws {
    try await with { proxy, echo in
      let port = proxy.port
      await onThread {
        let client = RawClient.connect(to: port)
        client?.write(Self.hello)
        _ = client?.readExactly(5)
        proxy.rules = .vanished
        client?.close()
      }
      await onThread { _ = RawClient.connect(to: port) }
      #expect(await proxy.wait { $0.accepted == 2 })
      #expect(echo.endings.value.isEmpty)
      #expect(proxy.counts.open == 2)
      proxy.rules = FaultRules()
      await echo.endings.wait { !$0.isEmpty }
    }
  }

  @Test func whatVanishedStaysSilent() async throws {
    try await with { proxy, echo in
      let port = proxy.port
      let client = try #require(
        await onThread {
          let client = RawClient.connect(to: port)
          client?.write(Self.hello)
          _ = client?.readExactly(5)
          return client
        })
      proxy.vanish()
      await echo.endings.wait { !$0.isEmpty }
      #expect(echo.endings.value == [.reset])
      let answer = await onThread {
        client.write(Self.hello)
        let other = RawClient.connect(to: port)
        other?.write(Self.hello)
        return other?.readExactly(5)
      }
      #expect(answer == Self.hello)
      #expect(await proxy.wait { $0.swallowedFromClients == 5 })
      #expect(proxy.counts.open == 2)
      client.close()
    }
  }

  @Test func aHeldDirectionLosesNothing() async throws {
    try await with { proxy, echo in
      let port = proxy.port
      proxy.change { $0.fromServer.flow = .held }
      let client = try #require(
        await onThread {
          let client = RawClient.connect(to: port)
          client?.write(Self.hello)
          return client
        })
      await echo.received.wait { $0 == Self.hello }
      #expect(proxy.counts.bytesFromServer == 0)
      proxy.change { $0.fromServer.flow = .passed }
      #expect(await onThread { client.readExactly(5) } == Self.hello)
    }
  }

  @Test(arguments: [0, 1, 4, 5, 7], FaultEnding.allCases)
  func aCutComesAfterExactlySoManyBytes(bytes: Int, ending: FaultEnding) async throws {
    try await with { proxy, echo in
      proxy.cutNext(from: .client, afterBytes: bytes, ending)
      let port = proxy.port
      let told = await onThread { () -> RawEnding? in
        let client = RawClient.connect(to: port)
        // A write that meets a reset takes the news of it away from the read.
        var isReset = false
        for byte in Self.hello + Self.hello where client?.write([byte]) == false {
          isReset = isReset || errno == ECONNRESET
        }
        return isReset ? .reset : client?.waitForEnd()
      }
      #expect(told == (ending == .fin ? .fin : .reset))
      #expect(await proxy.wait { $0.cut == 1 && $0.open == 0 })
      // A reset may overtake bytes on their last way.
      if ending == .fin {
        await echo.endings.wait { !$0.isEmpty }
        #expect(echo.received.value.count == bytes)
      } else {
        #expect(echo.received.value.count <= bytes)
      }
      // It happens once.
      let answer = await onThread {
        let client = RawClient.connect(to: port)
        client?.write(Self.hello)
        return client?.readExactly(5)
      }
      #expect(answer == Self.hello)
    }
  }

  @Test func singleBytesArriveComplete() async throws {
    try await with { proxy, echo in
      proxy.change { $0.setBoth(FaultRules.Direction(bytesPerPacket: 1)) }
      let port = proxy.port
      let sent = (0..<2_000).map { UInt8(truncatingIfNeeded: $0) }
      let answer = await onThread {
        let client = RawClient.connect(to: port)
        client?.write(sent)
        return client?.readExactly(sent.count)
      }
      #expect(answer == sent)
    }
  }

  @Test func delayedBytesAreLateAndInOrder() async throws {
    try await with { proxy, echo in
      let delay = UInt64.milliseconds(40)
      proxy.change { $0.setBoth(FaultRules.Direction(delay: delay)) }
      let port = proxy.port
      let (answer, took) = await onThread {
        let client = RawClient.connect(to: port)
        let start = SystemClock.monotonic
        for byte in Self.hello { client?.write([byte]) }
        let answer = client?.readExactly(5)
        return (answer, SystemClock.monotonic - start)
      }
      #expect(answer == Self.hello)
      #expect(took >= 2 * delay)
    }
  }

  @Test func aServerThatIsNotThereIsAReset() async throws {
    try await with { proxy, echo in
      let port = proxy.port
      proxy.redirect(to: 1)
      #expect(await onThread { RawClient.connect(to: port)?.waitForEnd() } == .reset)
      #expect(await proxy.wait { $0.unreachable == 1 && $0.open == 0 })
      proxy.redirect(to: echo.server.port)
      let answer = await onThread {
        let client = RawClient.connect(to: port)
        client?.write(Self.hello)
        return client?.readExactly(5)
      }
      #expect(answer == Self.hello)
    }
  }

  @Test func stoppingFreesEverything() async throws {
    let echo = Echo()
    var port: UInt16 = 0
    for _ in 0..<20 {
      let proxy = try FaultProxy(to: echo.server.port, port: port)
      port = proxy.port
      let clients = await onThread { [port] in
        (0..<3).compactMap { _ in
          let client = RawClient.connect(to: port)
          client?.write(Self.hello)
          _ = client?.readExactly(5)
          return client
        }
      }
      async let waiting = proxy.wait { _ in false }
      await proxy.stop()
      await proxy.stop()
      #expect(await waiting == false)
      for client in clients {
        #expect(await onThread { client.waitForEnd() } == .reset)
        client.close()
      }
    }
    #expect(throws: FaultProxyError.self) { try FaultProxy(to: 1, port: echo.server.port) }
  }

  @Test func aWaitEndsWithItsTask() async throws {
    try await with { proxy, echo in
      let waiting = Task { await proxy.wait { _ in false } }
      waiting.cancel()
      #expect(await waiting.value == false)
    }
  }
}
