import HostKit
import KizunaSyncTestSupport
import LocalStack

/// What breaks. The first half concerns the network of some hosts, the second the server.
enum SoakFault: String, CaseIterable, Sendable {
  case refused, held, unanswered, resetOnArrival
  case deafClient, deafServer, stalled, vanished
  case cut, cutOrderly, cutInsideAnswers, cutInsideRequests
  case singleBytes, late

  case restarted, away, closed1001, closed1011, closed1012, dropped, silent
  case upgradesRefused, upgradesIgnored, ringsLost, joinsRefused, requestsFail, requestsHang

  var concernsServer: Bool {
    switch self {
    case .refused, .held, .unanswered, .resetOnArrival, .deafClient, .deafServer, .stalled, .vanished, .cut,
      .cutOrderly, .cutInsideAnswers, .cutInsideRequests, .singleBytes, .late:
      false
    case .restarted, .away, .closed1001, .closed1011, .closed1012, .dropped, .silent, .upgradesRefused,
      .upgradesIgnored, .ringsLost, .joinsRefused, .requestsFail, .requestsHang:
      true
    }
  }

  // MARK: The network

  func begin(_ proxy: FaultProxy, bytes: Int) {
    switch self {
    case .refused: proxy.change { $0.admission = .refused }
    case .held: proxy.change { $0.admission = .held }
    case .unanswered: proxy.change { $0.admission = .unanswered }
    case .resetOnArrival: proxy.change { $0.admission = .reset }
    case .deafClient: proxy.change { $0.fromServer.flow = .swallowed }
    case .deafServer: proxy.change { $0.fromClient.flow = .swallowed }
    case .stalled: proxy.change { $0.setBoth(FaultRules.Direction(flow: .held)) }
    case .vanished: proxy.vanish()
    case .cut: proxy.cut(.reset)
    case .cutOrderly: proxy.cut(.fin)
    case .cutInsideAnswers: proxy.cutNext(from: .server, afterBytes: bytes)
    case .cutInsideRequests: proxy.cutNext(from: .client, afterBytes: bytes)
    case .singleBytes: proxy.change { $0.setBoth(FaultRules.Direction(bytesPerPacket: 1)) }
    case .late: proxy.change { $0.setBoth(FaultRules.Direction(delay: .milliseconds(300))) }
    default: break
    }
    switch self {
    case .refused, .held, .unanswered, .resetOnArrival: proxy.cut()
    default: break
    }
  }

  func end(_ proxy: FaultProxy) {
    proxy.rules = FaultRules()
    if self == .unanswered { proxy.cut() }
  }

  // MARK: The server

  func begin(_ server: SoakServer, status: Int) async throws {
    let stack = server.stack
    switch self {
    case .restarted: try await server.restart()
    case .away: try await server.stop()
    case .closed1001: await stack.closeSockets(code: 1001)
    case .closed1011: await stack.closeSockets(code: 1011)
    case .closed1012: await stack.closeSockets(code: 1012, announced: true)
    case .dropped: await stack.dropSockets(reset: true)
    case .silent: await stack.setSilent(true)
    case .upgradesRefused:
      await stack.refuseUpgrades(status: status)
      await stack.dropSockets()
    case .upgradesIgnored:
      await stack.ignoreUpgrades()
      await stack.dropSockets()
    case .ringsLost: await stack.setLosesDatabaseMessages(true)
    case .joinsRefused:
      await stack.setRestarting(true)
      await stack.dropSockets()
    case .requestsFail: stack.setRequestFault { _ in .json(["message": "out of order"], status: status) }
    case .requestsHang:
      stack.setRequestFault { _ in
        try? await SystemClock.shared.sleep(nanoseconds: .seconds(5))
        return nil
      }
    default: break
    }
  }

  func end(_ server: SoakServer) async throws {
    if self == .away { return try await server.start() }
    let stack = server.stack
    await stack.setSilent(false)
    await stack.refuseUpgrades(status: nil)
    await stack.setLosesDatabaseMessages(false)
    await stack.setRestarting(false)
    stack.setRequestFault(nil)
  }
}
