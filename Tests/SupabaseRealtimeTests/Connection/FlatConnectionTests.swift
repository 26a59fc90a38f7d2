import HostKit
import KizunaSyncTestSupport
import PhoenixChannels
import Testing

@testable import SupabaseRealtime

/// D32 for what the connection itself holds: timers, subscribers, waiting calls and readers.
@Suite struct FlatConnectionTests {
  private func play(_ fixture: ConnectionFixture, _ round: Int) async throws {
    let connection = fixture.connection
    // Subscribers that come and go, some before anybody noticed.
    for number in 0..<5 {
      let subscription = try fixture.listen("topic-\(round)-\(number)", "a")
      if number % 2 == 0 { await fixture.clock.settle() }
      subscription.cancel()
      subscription.cancel()
    }
    // Readers of the state that stop reading.
    for _ in 0..<3 {
      let updates = connection.statusUpdates
      let reader = Task { for await _ in updates {} }
      reader.cancel()
      await reader.value
    }
    connection.setAccessToken("token-\(round)")
    for hint in ConnectionHint.allCases { connection.hint(hint) }
    connection.hint(.pathSatisfied)
    fixture.transport.send(PhoenixFrame(ref: "x\(round)", topic: "realtime:nobody-\(round)", event: "phx_reply", [:]))
    fixture.transport.broadcast("a", event: "event-\(round)")
    if round % 5 == 0 { fixture.transport.cut() }
    if round % 7 == 0 {
      async let one: Void = connection.stop()
      async let two: Void = connection.stop()
      _ = await (one, two)
      connection.start()
    }
    await fixture.clock.settle()
    await fixture.clock.advance(by: .seconds(2))
  }

  @Test func tenTimesAsMuchHoldsNoMore() async throws {
    let fixture = try ConnectionFixture(credentials: ScriptedCredentials(.token("t")))
    let kept = try fixture.listen("a")
    fixture.connection.start()
    var early = 0
    var late = 0
    for round in 0..<110 {
      try await play(fixture, round)
      let held = await fixture.connection.heldEntries
      if round < 10 { early = max(early, held) } else { late = max(late, held) }
    }
    #expect(late <= early)
    #expect(fixture.connection.status.isReady)
    kept.cancel()
    await fixture.connection.stop()
    #expect(await fixture.connection.heldEntries == 0)
  }
}
