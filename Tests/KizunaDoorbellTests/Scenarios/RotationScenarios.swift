import HostKit
import KizunaSync
import KizunaSyncTestSupport
import PhoenixChannels
import Testing

@testable import KizunaDoorbell

/// A new token of the session owner on its way to the socket, and a hang-up that asks whether the peer is still there.
@Suite(.timeLimit(.minutes(5))) struct RotationScenarios {
  /// Everything sent with a token since, in the order it was sent.
  private func tokens(_ setting: ScriptedGateway, since count: Int = 0) -> [JSONValue?] {
    setting.transport.sent.dropFirst(count).map(\.frame).filter { ["phx_join", "access_token"].contains($0.event) }
      .map { $0.json?["access_token"] }
  }

  /// F03: a file that somebody else replaces. No time passes from the new file to the frame, which is within a second.
  @Test func aReplacedTokenFileReachesJoinedChannels() async throws {
    try await ScriptedGateway.with(tokenFile: true) { setting in
      let first = try await setting.gateway.session.accessToken().value
      #expect(tokens(setting) == [.string(first)])
      for number in 2...4 {
        await setting.advance(30)
        let (sent, now) = (setting.transport.sent.count, setting.clock.now)
        let next = setting.project.token(number)
        try DurableFile.replace(setting.folder + "/token", with: Array(next.utf8))
        await setting.settle { !setting.transport.sent("access_token").dropFirst(number - 2).isEmpty }
        #expect(setting.clock.now == now)
        let push = try #require(setting.transport.sent("access_token").last)
        #expect(push.topic == "realtime:kizunasync:todos")
        #expect(push.joinRef == setting.transport.sent("phx_join").last?.ref)
        // From here on only the new one is sent, also when the socket is made again.
        setting.transport.cut()
        await setting.settle { !setting.gateway.connection.status.isReady }
        await setting.advance(5, step: 1)
        #expect(setting.gateway.connection.status.isReady)
        #expect(tokens(setting, since: sent) == [.string(next), .string(next)])
      }
    }
  }

  /// F03: the token is replaced while the socket is down; the next join carries the new one.
  @Test func aTokenThatIsReplacedWhileTheSocketIsDown() async throws {
    try await ScriptedGateway.with(tokenFile: true) { setting in
      setting.transport.setReachable(false)
      setting.transport.cut()
      await setting.settle { !setting.gateway.connection.status.isReady }
      await setting.advance(30, step: 5)
      let sent = setting.transport.sent.count
      let next = setting.project.token(2)
      try DurableFile.replace(setting.folder + "/token", with: Array(next.utf8))
      await setting.settle { setting.gateway.session.currentToken?.value == next }
      setting.transport.setReachable(true)
      await setting.advance(40, step: 1)
      #expect(setting.gateway.connection.status.isReady)
      #expect(tokens(setting, since: sent) == [.string(next)])
    }
  }

  /// A password session refreshes of its own accord, keeps the refresh token in the session file, and pushes the new
  /// access token within a second of getting it.
  @Test func aRefreshedTokenReachesJoinedChannels() async throws {
    try await ScriptedGateway.with { setting in
      for refresh in 1...3 {
        let (sent, before) = (setting.transport.sent.count, setting.project.lastToken)
        await setting.advance(Double(ScriptedProject.lifetime) - 60)
        await setting.advance(1, step: 1)
        #expect(setting.project.refreshes == refresh)
        #expect(setting.project.signIns == 1)
        let pushes = setting.transport.sent.filter { $0.frame.event == "access_token" }
        #expect(pushes.count == refresh)
        #expect(tokens(setting, since: sent) == [.string(setting.project.lastToken)])
        #expect(setting.project.lastToken != before)
        // The token says when it was made.
        let issued = UnverifiedToken(setting.project.lastToken)?.issuedAt ?? 0
        let pushedAt = setting.project.seconds - Int64((setting.clock.now - (pushes.last?.at ?? 0)) / 1_000_000_000)
        #expect(pushedAt - issued <= 1)
        let file = try HostFile.readText(setting.gateway.configuration.sessionFile, maximumBytes: 1 << 16)
        #expect(file.contains("\"r\(refresh + 1)\""))
      }
      #expect(setting.project.refusals == 0)
    }
  }

  /// SIGHUP is `wake()`. The open socket is probed with five seconds' patience, and a silent peer is left.
  @Test(arguments: [true, false])
  func aHangUpProbesTheOpenSocket(isAlive: Bool) async throws {
    try await ScriptedGateway.with { setting in
      await setting.advance(60)
      setting.transport.setAnswersHeartbeats(isAlive)
      let (heartbeats, pulls) = (setting.transport.sent("heartbeat").count, setting.project.pulls)
      let connection = setting.gateway.connection
      setting.gateway.wake()
      await setting.settle { setting.project.pulls > pulls }
      #expect(setting.transport.sent("heartbeat").count == heartbeats + 1)
      #expect(connection.status.state == .open)
      await setting.clock.advance(by: .milliseconds(4_999))
      #expect(connection.status.state == .open)
      #expect(connection.status.counters.heartbeatsMissed == 0)
      await setting.clock.advance(by: .milliseconds(1))
      #expect(connection.status.counters.heartbeatsMissed == (isAlive ? 0 : 1))
      #expect((connection.status.state == .open) == isAlive)
      setting.transport.setAnswersHeartbeats(true)
      await setting.advance(2, step: 1)
      #expect(connection.status.isReady)
      #expect(setting.transport.requests.count == (isAlive ? 1 : 2))
    }
  }
}
