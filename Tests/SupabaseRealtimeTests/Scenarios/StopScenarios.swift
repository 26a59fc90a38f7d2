import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import Testing

@testable import SupabaseRealtime

/// D03, D31: `stop()` in every state, with a peer that may be dead: it returns, the descriptors are closed, and nothing is
/// heard of the connection any more, whatever the network does afterwards.
@Suite(.timeLimit(.minutes(5)))
struct StopScenarios {
  enum Moment: String, CaseIterable, Sendable {
    /// The TCP connection stands and nobody has taken it.
    case connecting
    /// The upgrade was asked for.
    case upgrading
    /// The WebSocket stands and the joins are not answered.
    case joining
    case joined
    /// Bytes vanish in both directions, and the connection does not know yet.
    case peerVanished
    /// What is sent is not taken any more.
    case peerStalled
    /// A heartbeat was missed, and the close of the old socket is not answered.
    case closing
    case backingOff
    case awaitingCredentials
    case suspended
    /// A topic may not be read.
    case denied
    /// A topic was refused, and is joined again later.
    case topicBackingOff
    /// Nobody wants a topic: no connection, and none is made.
    case disconnected
    /// The last topic was left, and the connection lingers.
    case lingering
  }

  @Test(arguments: Moment.allCases)
  func itReturnsAndNothingFollows(moment: Moment) async throws {
    var rules = FaultRules()
    if moment == .connecting { rules.admission = .held }
    if moment == .upgrading { rules.admission = .unanswered }
    try await FaultySetting.with(rules: rules) { policy in
      // Only the deadlines that bring the moment about are short.
      policy.handshakeDeadline = .seconds(60)
      policy.closeDeadline = ConnectionPolicy().closeDeadline
      if moment == .backingOff || moment == .closing { policy.reconnect.base = .seconds(600) }
      policy.reconnect.cap = .seconds(600)
      if moment != .closing { policy.heartbeat = HeartbeatPolicy() }
      if moment == .topicBackingOff {
        policy.join.backoffBase = .seconds(5)
        policy.join.backoffCap = .seconds(5)
      }
      if moment == .disconnected { policy.idleLinger = .milliseconds(20) }
    } prepare: { stack in
      guard moment == .joining || moment == .topicBackingOff else { return }
      await stack.changeRealtime { $0.joinDelay = .seconds(600) }
    } _: { setting in
      await Self.bringAbout(moment, setting)
      await setting.connection.stop()
      #expect(setting.connection.status.state == .stopped)
      #expect(openSockets(to: setting.proxy.port) == 0)

      // Everything is well again, and a second connection proves it; the first one stays away.
      let before = setting.proxy.counts.accepted
      let rings = setting.heard.value.count
      let status = setting.connection.status
      setting.proxy.rules = FaultRules()
      await setting.stack.changeRealtime {
        $0.joinDelay = 0
        $0.channelErrorBackoff = 0
      }
      let second = try setting.another()
      await second.expectRecovery()
      // The one that nobody had taken is taken now, dead as it is.
      #expect(setting.proxy.counts.accepted == before + (moment == .connecting ? 2 : 1))
      #expect(setting.heard.value.count == rings)
      #expect(setting.connection.status == status)
      await second.connection.stop()
    }
  }

  /// The product's own deadline keeps a stop within two seconds even when the peer never answers the close.
  @Test func aDeadPeerCannotHoldAStopForTwoSeconds() {
    #expect(ConnectionPolicy().closeDeadline < .seconds(2))
  }

  private static func bringAbout(_ moment: Moment, _ setting: FaultySetting) async {
    switch moment {
    case .connecting: await setting.waitFor { $0.state == .connecting }
    case .upgrading: await setting.proxy.wait { $0.swallowedFromClients > 0 }
    case .joining: await setting.waitFor { $0.topics.contains { $0.state == .joining } }
    case .joined: await setting.expectRecovery()
    case .peerVanished:
      await setting.expectRecovery()
      setting.proxy.rules = .vanished
    case .peerStalled:
      await setting.expectRecovery()
      setting.proxy.change { $0.setBoth(FaultRules.Direction(flow: .held)) }
    case .closing:
      await setting.expectRecovery()
      setting.proxy.vanish()
      await setting.waitUntilUnready()
    case .backingOff:
      await setting.expectRecovery()
      setting.proxy.cut()
      await setting.waitFor { if case .backingOff = $0.state { true } else { false } }
    case .awaitingCredentials:
      await setting.expectRecovery()
      setting.connection.setAccessToken(nil)
      await setting.waitFor { $0.state == .awaitingCredentials }
    case .suspended:
      await setting.expectRecovery()
      setting.connection.hint(.pathUnsatisfied)
      setting.proxy.cut()
      await setting.waitFor { if case .suspended = $0.state { true } else { false } }
    case .topicBackingOff:
      await setting.waitFor { status in
        status.topics.contains { if case .backingOff = $0.state { true } else { false } }
      }
    case .denied:
      await setting.expectRecovery()
      await setting.stack.changeRealtime { $0.channelErrorBackoff = 0 }
      let forbidden = try? setting.connection.subscribe(topics: ["forbidden:x"]) { _ in }
      await setting.waitFor { status in
        status.topics.contains { if case .denied = $0.state { true } else { false } }
      }
      withExtendedLifetime(forbidden) {}
    case .disconnected:
      await setting.expectRecovery()
      setting.leave()
      await setting.waitFor { $0.state == .disconnected }
    case .lingering:
      await setting.expectRecovery()
      setting.leave()
      await setting.waitFor { $0.topics.isEmpty && $0.state == .open }
    }
  }
}
