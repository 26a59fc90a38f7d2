import HostKit
import KizunaSyncTestSupport
import LocalStack

/// A way for the network between a gateway and its server to break, for HTTP and the WebSocket alike.
enum NetworkFault: String, CaseIterable, Sendable {
  case refused, held, unanswered, resetOnArrival, unreachable
  case deafClient, deafServer, stalled
  case cut, cutOrderly, cutInsideAnswers, cutInsideRequests
  case singleBytes, late

  func begin(_ proxy: FaultProxy) {
    switch self {
    case .refused: proxy.change { $0.admission = .refused }
    case .held: proxy.change { $0.admission = .held }
    case .unanswered: proxy.change { $0.admission = .unanswered }
    case .resetOnArrival: proxy.change { $0.admission = .reset }
    case .unreachable: proxy.redirect(to: 1)
    case .deafClient: proxy.change { $0.fromServer.flow = .swallowed }
    case .deafServer: proxy.change { $0.fromClient.flow = .swallowed }
    case .stalled: proxy.change { $0.setBoth(FaultRules.Direction(flow: .held)) }
    case .cut: proxy.cut(.reset)
    case .cutOrderly: proxy.cut(.fin)
    case .cutInsideAnswers: proxy.cutNext(from: .server, afterBytes: 150)
    case .cutInsideRequests: proxy.cutNext(from: .client, afterBytes: 150)
    case .singleBytes: proxy.change { $0.setBoth(FaultRules.Direction(bytesPerPacket: 1)) }
    case .late: proxy.change { $0.setBoth(FaultRules.Direction(delay: .milliseconds(300))) }
    }
    // What is connected stays connected through faults of the admission; they need a reason to connect again.
    switch self {
    case .refused, .held, .unanswered, .resetOnArrival, .unreachable, .singleBytes, .late: proxy.cut()
    default: break
    }
  }

  /// Waits until the fault has been felt.
  func isFelt(_ proxy: FaultProxy, _ stack: LocalStack, since before: FaultCounts) async {
    switch self {
    case .refused, .held: await stack.waitForRealtime { $0.openSockets == 0 }
    case .unanswered, .resetOnArrival: await proxy.wait { $0.accepted > before.accepted + 2 }
    case .unreachable: await proxy.wait { $0.unreachable > before.unreachable + 2 }
    case .deafClient: await proxy.wait { $0.swallowedFromServer > before.swallowedFromServer }
    case .deafServer: await proxy.wait { $0.swallowedFromClients > before.swallowedFromClients }
    // Nothing is taken from anybody, so only a new connection tells; it comes when a heartbeat was missed.
    case .stalled: await proxy.wait { $0.accepted > before.accepted }
    case .cut, .cutOrderly, .cutInsideAnswers, .cutInsideRequests: await proxy.wait { $0.cut > before.cut }
    case .singleBytes, .late: break
    }
  }

  func end(_ proxy: FaultProxy, _ stack: LocalStack) {
    proxy.rules = FaultRules()
    proxy.redirect(to: stack.port)
    // Those that were never answered would wait for their deadlines; whoever blocked them restarts.
    if self == .unanswered { proxy.cut() }
  }
}
