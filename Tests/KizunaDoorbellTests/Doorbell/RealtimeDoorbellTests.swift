import HostKit
import KizunaDoorbell
import KizunaSyncTestSupport
import SupabaseRealtime
import Testing

@Suite struct RealtimeDoorbellTests {
  private let clock = VirtualClock()
  private let transport: ScriptedTransport
  private let doorbell: RealtimeDoorbell

  init() throws {
    transport = ScriptedTransport(clock: clock)
    let connection = RealtimeConnection(
      RealtimeConfiguration(url: try ServerURL("http://127.0.0.1:9"), apiKey: "key"), transport: transport,
      clock: clock, jitter: { 1 })
    doorbell = RealtimeDoorbell(connection)
  }

  @Test func ringsAfterTheJoinAndForEveryBroadcast() async {
    let rings = Locked(0)
    let subscription = doorbell.subscribe(topics: ["kizunasync:todos", "kizunasync:notes"]) {
      rings.withLock { $0 += 1 }
    }
    await clock.settle()
    // Both joins are one ring: what was sent before is gone, whichever topic it was on.
    #expect(rings.withLock { $0 } == 1)
    transport.broadcast("kizunasync:todos")
    transport.broadcast("kizunasync:notes", event: "whatever", payload: ["t": "ignored"])
    await clock.settle()
    #expect(rings.withLock { $0 } == 3)
    #expect(
      transport.sent("phx_join").allSatisfy { frame in
        if case .json(let payload) = frame.payload { payload["config"]?["private"] == true } else { false }
      })
    subscription.cancel()
  }

  @Test func ringsAgainAfterAReconnect() async {
    let rings = Locked(0)
    let subscription = doorbell.subscribe(topics: ["kizunasync:todos"]) { rings.withLock { $0 += 1 } }
    await clock.settle()
    transport.cut()
    await clock.advance(by: .seconds(5))
    #expect(rings.withLock { $0 } == 2)
    subscription.cancel()
  }

  @Test func cancelEndsTheCallbacksAndMayBeRepeated() async {
    let rings = Locked(0)
    let subscription = doorbell.subscribe(topics: ["kizunasync:todos"]) { rings.withLock { $0 += 1 } }
    await clock.settle()
    subscription.cancel()
    subscription.cancel()
    transport.broadcast("kizunasync:todos")
    await clock.settle()
    #expect(rings.withLock { $0 } == 1)
  }

  @Test func twoSubscribersShareOneConnectionAndOneJoin() async {
    let first = Locked(0)
    let second = Locked(0)
    let one = doorbell.subscribe(topics: ["kizunasync:todos"]) { first.withLock { $0 += 1 } }
    let other = RealtimeDoorbell(doorbell.connection).subscribe(topics: ["kizunasync:todos"]) {
      second.withLock { $0 += 1 }
    }
    await clock.settle()
    #expect(transport.requests.count == 1)
    #expect(transport.sent("phx_join").count == 1)
    one.cancel()
    transport.broadcast("kizunasync:todos")
    await clock.settle()
    #expect(first.withLock { $0 } == 1)
    #expect(second.withLock { $0 } == 2)
    other.cancel()
  }

  @Test func aNameThatIsNoTopicDoesNotSpoilTheOthers() async {
    let rings = Locked(0)
    let subscription = doorbell.subscribe(topics: ["", "kizunasync:todos"]) { rings.withLock { $0 += 1 } }
    await clock.settle()
    #expect(rings.withLock { $0 } == 1)
    subscription.cancel()
  }
}
