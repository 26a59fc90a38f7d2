import Glibc
import HostKit
import Testing

@testable import SupabaseRealtime

/// Happy eyeballs: of the addresses of a host, in the order of preference, the first that takes a connection.
@Suite(.timeLimit(.minutes(5))) struct ConnectRaceTests {
  private typealias Address = AddressResolver.Address
  private static let v6 = AddressResolver.Address(text: "::1", isIPv6: true)
  private static let v4 = AddressResolver.Address(text: "127.0.0.1", isIPv6: false)
  /// Longer than a test may take: whoever waits for it is found out.
  private static let never: UInt64 = .seconds(3_600)

  private func race(
    _ addresses: [AddressResolver.Address], port: UInt16, headStart: UInt64, deadline: UInt64 = never
  ) async -> Result<AddressResolver.Address, RealtimeTransportFailure> {
    let result = await onThread {
      ConnectRace(
        headStart: headStart, addresses: addresses, port: port, deadline: SystemClock.monotonic + deadline
      ).run(host: "h.example")
    }
    #expect(openSockets(to: port) == 0)
    return result
  }

  /// A listener whose queue is full: the kernel leaves further connections unanswered, as a host does that is gone.
  private struct SilentAddress {
    let server: RawServer
    private let fillers: [Int32]

    init(_ address: AddressResolver.Address, port: UInt16 = 0) {
      server = RawServer(backlog: 0, host: address.text, port: port, script: nil)
      fillers = (0..<3).compactMap { [server] _ in try? NonblockingConnect.start(address, port: server.port).get() }
    }

    func end() { for filler in fillers { close(filler) } }
  }

  @Test(arguments: [[v6, v4], [v4, v6]])
  func theFirstIsSilentAndTheSecondAnswers(addresses: [AddressResolver.Address]) async {
    let answering = RawServer(host: addresses[1].text) { $0.drain() }
    let silent = SilentAddress(addresses[0], port: answering.port)
    #expect(openSocketsToAnywhere(answering.port) > 0)
    let result = await onThread {
      ConnectRace(
        headStart: .milliseconds(20), addresses: addresses, port: answering.port,
        deadline: SystemClock.monotonic + Self.never
      ).run(host: "h.example")
    }
    #expect(result == .success(addresses[1]))
    silent.end()
    await lookAgain { openSocketsToAnywhere(answering.port) > 0 }
  }

  /// Whoever is refused does not wait for its head start to be over.
  @Test(arguments: [[v6, v4], [v4, v6]])
  func theFirstIsRefusedAndTheSecondIsTriedAtOnce(addresses: [AddressResolver.Address]) async {
    let server = RawServer(host: addresses[1].text) { $0.drain() }
    #expect(await race(addresses, port: server.port, headStart: Self.never) == .success(addresses[1]))
  }

  @Test(arguments: [[v6, v4], [v4, v6]])
  func theFirstAnswersAndTheSecondIsNotTried(addresses: [AddressResolver.Address]) async {
    let server = RawServer(host: addresses[0].text) { $0.drain() }
    #expect(await race(addresses, port: server.port, headStart: Self.never) == .success(addresses[0]))
  }

  @Test func bothAreRefused() async {
    let port = RawServer(script: nil).port
    let result = await race([Self.v6, Self.v4], port: port, headStart: Self.never)
    #expect(
      result
        == .failure(
          RealtimeTransportFailure(.unreachable, "No connection to h.example port \(port): Connection refused.")))
  }

  @Test func bothAreSilentUntilTheDeadline() async {
    let first = SilentAddress(Self.v4)
    let second = SilentAddress(Self.v6, port: first.server.port)
    let port = first.server.port
    let result = await onThread {
      ConnectRace(
        headStart: .milliseconds(20), addresses: [Self.v6, Self.v4], port: port,
        deadline: SystemClock.monotonic + .milliseconds(200)
      ).run(host: "h.example")
    }
    #expect(
      result
        == .failure(
          RealtimeTransportFailure(.timeout, "No connection to h.example port \(port): Connection timed out."))
    )
    first.end()
    second.end()
    await lookAgain { openSocketsToAnywhere(port) > 0 }
  }

  /// Through the transport: the winner's address is connected to, and the host keeps its name.
  @Test func theTransportReachesTheFamilyThatAnswers() async {
    let asked = Locked("")
    let server = RawServer { peer in
      guard let request = peer.acceptUpgrade() else { return }
      asked.withLock { $0 = request }
      peer.drain()
    }
    let silent = SilentAddress(Self.v6, port: server.port)
    var limits = LibwebsocketsTransport.Limits()
    limits.addressHeadStart = .milliseconds(20)
    let transport = LibwebsocketsTransport(limits: limits) { _ in .success([Self.v6, Self.v4]) }
    let probe = TransportProbe(
      RealtimeTransportRequest(url: "ws://race.local:\(server.port)/x", closeTimeout: .milliseconds(100)),
      over: transport)
    #expect(await probe.next() == .opened)
    #expect(asked.withLock { $0 }.contains("Host: race.local:\(server.port)\r\n"))
    probe.close()
    _ = await probe.rest()
    silent.end()
  }
}
