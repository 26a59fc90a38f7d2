import HostKit
import KizunaSync
import KizunaSyncTestSupport
import PhoenixChannels
import Testing

@testable import KizunaDoorbell

/// D11: the calendar jumps by two hours while the clock that counts barely moves, and the reverse. Nothing ends before its
/// time, nothing comes in a burst, and every token is replaced in time.
@Suite(.timeLimit(.minutes(5))) struct CalendarScenarios {
  /// Milliseconds.
  private static let twoHours: Int64 = 7_200_000

  enum Jump: Sendable, CaseIterable {
    case forward, back, forwardAndBack, backAndForward

    var steps: [Int64] {
      switch self {
      case .forward: [twoHours]
      case .back: [-twoHours]
      case .forwardAndBack: [twoHours, -twoHours]
      case .backAndForward: [-twoHours, twoHours]
      }
    }
  }

  /// What has happened so far, of all that could come too often.
  private struct Counts: Equatable {
    var grants: Int
    var pulls: Int
    var connections: Int
    var heartbeats: Int
    var joins: Int
    var pushes: Int

    init(_ setting: ScriptedGateway) {
      grants = setting.project.signIns + setting.project.refreshes
      pulls = setting.project.pulls
      connections = setting.transport.requests.count
      heartbeats = setting.transport.sent("heartbeat").count
      joins = setting.transport.sent("phx_join").count
      pushes = setting.transport.sent("access_token").count
    }
  }

  private func expectGood(_ setting: ScriptedGateway, _ location: SourceLocation = #_sourceLocation) {
    #expect(setting.gateway.connection.status.isReady, sourceLocation: location)
    #expect(setting.gateway.session.failure == nil, sourceLocation: location)
    #expect(setting.gateway.session.currentToken != nil, sourceLocation: location)
    #expect(setting.project.refusals == 0, sourceLocation: location)
    #expect(setting.project.signIns <= 1, sourceLocation: location)
    #expect(!setting.hasEnded.withLock { $0 }, sourceLocation: location)
  }

  /// - Parameter isTold: the kernel reports jumps; a host may also hear nothing of them.
  @Test(arguments: Jump.allCases, [true, false])
  func theCalendarJumps(jump: Jump, isTold: Bool) async throws {
    try await ScriptedGateway.with(pollInterval: .seconds(600)) { setting in
      await setting.advance(1_200)
      for step in jump.steps {
        var before = Counts(setting)
        // Not beside a heartbeat, which would be look enough.
        repeat {
          before = Counts(setting)
          await setting.advance(2)
        } while Counts(setting).heartbeats != before.heartbeats
        setting.clock.jumpWall(byMilliseconds: step)
        if isTold { setting.calendar.jumped() }
        await setting.settle()
        let after = Counts(setting)
        // One look whether the peer is there, one run, and one question for a token; all of it at once, or nothing.
        #expect(after.connections == before.connections && after.joins == before.joins)
        #expect(after.heartbeats - before.heartbeats == (isTold ? 1 : 0))
        #expect(after.pulls - before.pulls <= (isTold ? 2 : 0))
        #expect(after.grants - before.grants <= (isTold ? 1 : 0))
        expectGood(setting)
        await setting.advance(5)
        #expect(setting.transport.requests.count == before.connections)
      }

      // Two hours more: as many tokens, pulls and heartbeats as without a jump.
      let before = Counts(setting)
      for _ in 0..<13 {
        await setting.advance(600, step: 300)
        expectGood(setting)
      }
      let after = Counts(setting)
      #expect(after.connections == before.connections)
      #expect((2...3).contains(after.grants - before.grants))
      #expect(after.pushes - before.pushes == after.grants - before.grants)
      #expect((13...30).contains(after.pulls - before.pulls))
      #expect((270...360).contains(after.heartbeats - before.heartbeats))
      #expect(setting.transport.sent("access_token").last?.json?["access_token"] == .string(setting.project.lastToken))
    }
  }

  /// A connection that is made after the jump takes the token that the clock says is good.
  @Test(arguments: [twoHours, -twoHours])
  func reconnectsAfterTheJumpJoinOnce(step: Int64) async throws {
    try await ScriptedGateway.with { setting in
      await setting.advance(1_200)
      setting.clock.jumpWall(byMilliseconds: step)
      let before = Counts(setting)
      for _ in 0..<3 {
        setting.transport.cut()
        await setting.settle { !setting.gateway.connection.status.isReady }
        await setting.advance(40, step: 1)
        expectGood(setting)
      }
      let after = Counts(setting)
      #expect(after.connections == before.connections + 3)
      #expect(after.joins == before.joins + 3)
      #expect(after.grants == before.grants)
    }
  }

  /// The reverse: both clocks are two hours on, and every timer is overdue.
  @Test func theHostWakesAfterTwoHours() async throws {
    try await ScriptedGateway.with(pollInterval: .seconds(15)) { setting in
      await setting.advance(120)
      let before = Counts(setting)
      await setting.clock.suspendHost(for: .seconds(7_200))
      await setting.settle { setting.project.refreshes > 0 }
      let after = Counts(setting)
      #expect(after.connections == before.connections)
      // The overdue one, and the look whether the peer is there.
      #expect((1...2).contains(after.heartbeats - before.heartbeats))
      #expect(after.grants - before.grants == 1)
      #expect(after.pulls - before.pulls <= 3)
      expectGood(setting)
      await setting.advance(30, step: 5)
      #expect(setting.transport.requests.count == before.connections)
      expectGood(setting)
    }
  }

  /// A token that somebody else writes, and a calendar that is wrong for a while.
  @Test(arguments: Jump.allCases)
  func aTokenFileOutlivesTheJump(jump: Jump) async throws {
    try await ScriptedGateway.with(tokenFile: true, pollInterval: .seconds(60)) { setting in
      await setting.advance(600)
      for step in jump.steps {
        setting.clock.jumpWall(byMilliseconds: step)
        setting.calendar.jumped()
        await setting.settle()
        expectGood(setting)
        await setting.advance(300)
        expectGood(setting)
        // The successor counts from its receipt too, by what the server says of the time.
        let next = setting.project.token(2)
        try DurableFile.replace(setting.folder + "/token", with: Array(next.utf8))
        await setting.settle { setting.gateway.session.currentToken?.value == next }
        await setting.advance(600)
        expectGood(setting)
      }
    }
  }
}
