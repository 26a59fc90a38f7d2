import HostKit
import PhoenixChannels
import Testing

/// When subscribers are rung.
@Suite struct RingTests {
  private let a = MachineDriver.topic("a")
  private let b = MachineDriver.topic("b")

  @Test func oneRingForAllTopicsOnceNoJoinIsOut() {
    var driver = MachineDriver.open(topics: ["a", "b"])
    driver.accept("a")
    #expect(driver.rings.isEmpty)
    driver.accept("b")
    #expect(driver.rings == [ConnectionRing(topics: [a, b], cause: .joined, receivedAt: 1)])
    driver.advance(5)
    #expect(driver.rings.count == 1)
  }

  @Test func neverLaterThanASecondAfterTheFirst() {
    var driver = MachineDriver.open(topics: ["a", "b"])
    driver.accept("a")
    driver.advance(0.9)
    #expect(driver.rings.isEmpty)
    driver.advance(0.2)
    #expect(driver.rings.map(\.topics) == [[a]])
    driver.accept("b")
    #expect(driver.rings.map(\.topics) == [[a], [b]])
  }

  @Test func aLostConnectionDoesNotSwallowARing() {
    var driver = MachineDriver.open(topics: ["a", "b"])
    driver.accept("a")
    driver.feed(.failed("reset", isConfiguration: false))
    #expect(driver.rings.map(\.topics) == [[a]])
  }

  @Test func broadcastsRingAtOnceWhateverTheirName() {
    var driver = MachineDriver.joined()
    driver.forget()
    driver.broadcast("a", "changed")
    driver.broadcast("a", "INSERT")
    driver.receive("postgres_changes", "a", ["data": [:]])
    driver.receive(
      PhoenixFrame(
        topic: "realtime:a", event: "broadcast",
        payload: .broadcast(UserBroadcast(event: "blob", content: .bytes([1])))))
    #expect(
      driver.rings.map(\.cause) == [
        .broadcast(event: "changed"), .broadcast(event: "INSERT"), .change, .broadcast(event: "blob"),
      ])
    driver.broadcast("elsewhere")
    driver.receive("presence_state", "a")
    #expect(driver.rings.count == 4)
  }

  @Test func d23_readinessOfTheReplicationRingsAgain() {
    var driver = MachineDriver.joined()
    #expect(driver.joins()[0].json?["config"]?["broadcast"]?["replication_ready"] == true)
    driver.forget()
    driver.receive(
      "system", "a", joinRef: "1",
      ["extension": "system", "status": "ok", "message": "Replication connection established", "channel": "a"])
    #expect(driver.rings.map(\.cause) == [.replicationReady])
  }

  /// What was written while nobody listened is asked for after the rejoin, without another broadcast.
  @Test func d24_everyRejoinRings() {
    var driver = MachineDriver.joined(topics: ["a", "b"])
    for _ in 0..<10 {
      driver.forget()
      driver.feed(.closed(code: 1000, reason: ""))
      driver.advance(driver.reconnectIn ?? 0)
      driver.feed(.opened)
      driver.acceptJoins()
      driver.advanceAnswering(60)
      #expect(driver.rings == [ConnectionRing(topics: [a, b], cause: .joined, receivedAt: 1)])
    }
  }

  /// Whatever comes between the join and its answer is not lost.
  @Test func d33_messagesBeforeTheAnswerRing() {
    var driver = MachineDriver.open()
    driver.broadcast("a")
    driver.receive(
      PhoenixFrame(
        topic: "realtime:a", event: "broadcast",
        payload: .broadcast(UserBroadcast(event: "second", content: .bytes([1])))))
    driver.accept("a")
    #expect(driver.rings.map(\.cause) == [.broadcast(event: "changed"), .broadcast(event: "second"), .joined])
  }

  @Test func aMessageThatWasTooLargeRingsAllTopics() {
    var driver = MachineDriver.joined(topics: ["a", "b"])
    driver.forget()
    driver.feed(.tooLarge(bytes: 2_000_000))
    #expect(driver.rings.map(\.topics) == [[a, b]])
    #expect(driver.status.counters.framesOversized == 1)
  }

  @Test func whatDoesNotParseIsCountedAndIgnored() {
    var driver = MachineDriver.joined()
    driver.forget()
    for _ in 0..<1_000 { driver.feed(.frame(.failure(.notJSON(offset: 0)), receivedAt: 1)) }
    #expect(driver.rings.isEmpty)
    #expect(driver.status.isReady)
    #expect(driver.status.counters.framesUndecodable == 1_000)
  }

  /// An error of `postgres_changes` ends nothing, and is told.
  @Test func d25_anAsynchronousErrorReachesTheStatus() {
    var driver = MachineDriver.joined()
    driver.receive(
      "system", "a", joinRef: "1",
      ["extension": "postgres_changes", "status": "error", "message": "Unable to subscribe", "channel": "a"])
    #expect(driver.status.isReady)
    #expect(driver.status.topics[0].lastFailure?.text == "Unable to subscribe")
  }

  @Test func stabilityClearsTheStreak() {
    var driver = MachineDriver.joined()
    for expected in [1.0, 2, 4, 8] {
      driver.feed(.failed("reset", isConfiguration: false))
      #expect(driver.reconnectIn == expected)
      driver.advance(expected)
      driver.feed(.opened)
      driver.acceptJoins()
      driver.advance(10)
    }
    // Ready for the whole window, a topic that is denied notwithstanding.
    driver.subscribe("b")
    driver.refuse("b", "Unauthorized: x")
    driver.advanceAnswering(31)
    #expect(driver.status.attempt == 0)
    driver.feed(.failed("reset", isConfiguration: false))
    #expect(driver.reconnectIn == 1)
  }
}
