import HostKit
import KizunaDoorbell
import KizunaSync
import KizunaSyncTestSupport
import SupabaseRealtime
import Testing

/// A wakeup of one's own: it counts what it heard.
final class CountingWakeup: KizunaSyncRealtimeWakeup {
  let connection: RealtimeConnection
  let heard = Locked(0)
  init(_ connection: RealtimeConnection) { self.connection = connection }

  func subscribe(topics: [String], onWake: @escaping @Sendable () -> Void) -> any KizunaSyncRealtimeSubscription {
    let subscription = try? connection.subscribe(topics: topics) { [heard] _ in
      heard.withLock { $0 += 1 }
      onWake()
    }
    guard let subscription else { preconditionFailure("not the names of topics: \(topics)") }
    connection.start()
    return subscription
  }
}

@Test func wakesAgainAfterTheServerWasAway() async throws {
  let joined: [RealtimeScript.Step] = [.accept, .expect(.join("kizunasync:todos")), .reply()]
  let away: [RealtimeScript.Step] = [.wait(.seconds(5)), .close(code: 1012), .refuse(status: 503), .stall]
  let clock = VirtualClock()
  let transport = ScriptedTransport(clock: clock, RealtimeScript(joined + away + joined), afterwards: .complain)
  let configuration = RealtimeConfiguration(url: try ServerURL("https://example.com"), apiKey: "key")
  let wakeup = CountingWakeup(RealtimeConnection(configuration, transport: transport, clock: clock))
  let subscription = wakeup.subscribe(topics: ["kizunasync:todos"]) {}
  await clock.advance(by: .seconds(60))
  #expect(wakeup.heard.withLock { $0 } == 2)  // once for each join, because rings sent meanwhile are gone
  #expect(transport.complaints() == [])
  subscription.cancel()
  await wakeup.connection.stop()
}
