import HostKit
import PhoenixChannels
import Testing

/// Replays recorded conversations through the machine: it does what the recording client did, by its own rules and with
/// its own references, and is told what the server said.
@Suite struct RecordedScenarioTests {
  @Test func conversationsLeadToTheStateTheyImply() throws {
    let recordings = try Recording.all() ?? Recording.selection()
    var replayed = 0
    var unknown: [String] = []
    for recording in recordings {
      let outcomes = RecordedOutcome.of(recording)
      if outcomes.isEmpty { unknown.append(recording.scenario) }
      for outcome in outcomes {
        let replay = Replay.run(recording, connection: outcome.connection)
        outcome.check(replay)
        #expect(replay.unsent == outcome.unsent, "\(recording.scenario)")
      }
      // Also of what nothing is known about, and of every socket.
      for connection in recording.connections {
        let replay = Replay.run(recording, connection: connection)
        #expect(replay.driver.rules.violations == [], "\(recording.scenario) \(connection)")
      }
      replayed += 1
    }
    print("\(replayed) recorded conversations replayed, \(unknown.count) of them without a known outcome: \(unknown)")
    #expect(replayed >= 30)
    #expect(unknown.count * 2 < recordings.count)
  }
}
