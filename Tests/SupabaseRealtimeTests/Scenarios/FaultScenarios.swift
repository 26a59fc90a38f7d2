import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import Testing

@testable import SupabaseRealtime

/// The connection over a network that breaks in every way a proxy can: after each fault every topic is joined once, by
/// the server's own count, and rings.
@Suite(.timeLimit(.minutes(5)))
struct FaultScenarios {
  // MARK: Nobody answers

  @Test(arguments: [FaultRules.Admission.refused, .held, .unanswered, .reset])
  func connectionsAreNotTakenForAWhile(admission: FaultRules.Admission) async throws {
    try await FaultySetting.with { setting in
      await setting.expectRecovery()
      setting.proxy.change { $0.admission = admission }
      setting.proxy.cut()
      await setting.waitForAttempts(4)
      setting.proxy.change { $0.admission = .forwarded }
      await setting.expectRecovery()
    }
  }

  @Test func theServerBehindTheBalancerIsGoneForAWhile() async throws {
    try await FaultySetting.with { setting in
      await setting.expectRecovery()
      setting.proxy.redirect(to: 1)
      setting.proxy.cut()
      await setting.proxy.wait { $0.unreachable >= 3 }
      setting.proxy.redirect(to: setting.stack.port)
      await setting.expectRecovery()
    }
  }

  // MARK: Half-open

  @Test(arguments: FaultOrigin.allCases, [FaultRules.Flow.swallowed, .held])
  func oneDirectionFallsSilent(origin: FaultOrigin, flow: FaultRules.Flow) async throws {
    try await FaultySetting.with { setting in
      await setting.expectRecovery()
      setting.proxy.change { rules in
        if origin == .client { rules.fromClient.flow = flow } else { rules.fromServer.flow = flow }
      }
      await setting.waitUntilUnready()
      #expect(setting.connection.status.counters.heartbeatsMissed >= 1)
      setting.proxy.rules = FaultRules()
      await setting.expectRecovery()
    }
  }

  /// D09: the peer is gone without a word, and neither the old socket nor its close handshake holds up the next one.
  @Test func thePeerVanishes() async throws {
    try await FaultySetting.with { setting in
      await setting.expectRecovery()
      for round in 1...3 {
        setting.proxy.vanish()
        await setting.waitUntilUnready()
        await setting.expectRecovery()
        #expect(setting.connection.status.counters.heartbeatsMissed >= round)
      }
      #expect(await setting.proxy.wait { $0.open == 1 })
    }
  }

  /// The server takes the join and its answer is lost: the topic is joined again on the same or on another socket, and
  /// the server ends up with one join of it.
  @Test func answersToTheJoinsAreLost() async throws {
    try await FaultySetting.with { setting in
      await setting.expectRecovery()
      setting.proxy.change { $0.fromServer.flow = .held }
      setting.proxy.cut()
      await setting.waitForAttempts(3)
      setting.proxy.rules = FaultRules()
      await setting.expectRecovery()
    }
  }

  // MARK: Cuts

  @Test(arguments: FaultEnding.allCases)
  func everythingIsCutAgainAndAgain(ending: FaultEnding) async throws {
    try await FaultySetting.with { setting in
      for _ in 0..<10 {
        await setting.expectRecovery()
        setting.proxy.cut(ending)
        await setting.waitUntilUnready()
      }
      await setting.expectRecovery()
    }
  }

  /// In heartbeats, broadcasts and what follows them, at places that no frame knows of.
  @Test(arguments: FaultOrigin.allCases, PhoenixVersion.allCases)
  func theConnectionIsCutInsideWhateverIsUnderWay(origin: FaultOrigin, version: PhoenixVersion) async throws {
    try await FaultySetting.with(version) { policy in
      policy.heartbeat.interval = .milliseconds(20)
    } _: { setting in
      await setting.expectRecovery()
      var bytes = 0
      for round in 1...16 {
        setting.proxy.cutNext(from: origin, afterBytes: bytes, round.isMultiple(of: 2) ? .fin : .reset)
        // Heartbeats keep bytes coming until it strikes.
        await setting.stack.send(topic: "kizunasync:todos", event: "x", payload: ["t": "todos"])
        await setting.proxy.wait { $0.cut >= round }
        await setting.expectRecovery()
        bytes += 1 + bytes / 2
      }
      await setting.expectRecovery()
    }
  }

  /// A new connection is cut while it is being made: in the upgrade's answer, then in the answers to the joins.
  @Test(arguments: FaultOrigin.allCases)
  func everyAttemptIsCutALittleLater(origin: FaultOrigin) async throws {
    try await FaultySetting.with(.v2) { policy in
      policy.heartbeat.interval = .milliseconds(20)
    } _: { setting in
      await setting.expectRecovery()
      for bytes in stride(from: 0, through: 800, by: 50) {
        setting.proxy.cut()
        let before = setting.proxy.counts.cut
        setting.proxy.cutNext(from: origin, afterBytes: bytes)
        await setting.proxy.wait { $0.cut > before }
      }
      await setting.expectRecovery()
    }
  }

  // MARK: Slow

  @Test(arguments: PhoenixVersion.allCases)
  func everyPacketIsOneByte(version: PhoenixVersion) async throws {
    var rules = FaultRules()
    rules.setBoth(FaultRules.Direction(bytesPerPacket: 1))
    try await FaultySetting.with(version, rules: rules) { setting in
      await setting.expectRecovery()
      setting.proxy.cut()
      await setting.waitUntilUnready()
      await setting.expectRecovery()
    }
  }

  /// With the deadlines of the product, so a slow path is no reason to let go.
  @Test func everyPacketIsLate() async throws {
    var rules = FaultRules()
    rules.setBoth(FaultRules.Direction(delay: .milliseconds(300)))
    let product = ConnectionPolicy()
    try await FaultySetting.with(rules: rules) { policy in
      policy.heartbeat.deadline = product.heartbeat.deadline
      policy.handshakeDeadline = product.handshakeDeadline
      policy.join.deadline = product.join.deadline
    } _: { setting in
      await setting.expectRecovery()
      // Long enough for heartbeats to go and come.
      while setting.connection.status.counters.heartbeatsSent < 4 { await setting.expectRecovery() }
      let counters = setting.connection.status.counters
      #expect(counters.heartbeatsMissed == 0)
      #expect(counters.opened == 1)
    }
  }
}
