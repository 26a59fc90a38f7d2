#if Postgres
  import HostKit
  import Testing

  @testable import PostgresStack

  @Suite struct SeenMessagesTests {
    @Test func whatWasThereBeforeIsNoGap() {
      var seen = SeenMessages(margin: 100)
      #expect(seen.catchUp(["a", "b"], at: 1) == ["a", "b"])
      // Committed between listening and reading: its notification is still to come.
      #expect(seen.fresh(["b", "c"], at: 2) == ["b", "c"])
    }

    @Test func aGapIsFilledOnce() {
      var seen = SeenMessages(margin: 100)
      _ = seen.catchUp([], at: 1)
      #expect(seen.fresh(["a"], at: 2) == ["a"])
      #expect(seen.catchUp(["a", "b", "c"], at: 3) == ["b", "c"])
      #expect(seen.fresh(["c", "d"], at: 4) == ["d"])
      #expect(seen.catchUp(["a", "b", "c", "d"], at: 5) == [])
    }

    @Test func whatCouldNotBeReadIsAGapAgain() {
      var seen = SeenMessages(margin: 100)
      _ = seen.catchUp([], at: 1)
      #expect(seen.fresh(["a", "b"], at: 2) == ["a", "b"])
      seen.forget(["b"])
      #expect(seen.catchUp(["a", "b"], at: 3) == ["b"])
    }

    /// Whatever the order of commits, losses and notifications, every message is delivered exactly once.
    @Test(arguments: 0..<50) func exactlyOnce(seed: UInt64) {
      var random = SeededRandom(seed)
      var seen = SeenMessages(margin: 1_000_000)
      var table: [String] = []
      var notifications: [String] = []
      var delivered: [String: Int] = [:]
      _ = seen.catchUp([], at: 0)
      for step in 1...200 {
        let now = UInt64(step)
        switch random.next() % 4 {
        case 0, 1:
          table.append("m\(step)")
          notifications.append("m\(step)")
        case 2:
          for id in seen.fresh(notifications, at: now) { delivered[id, default: 0] += 1 }
          notifications = []
        default:
          // The session is lost, and with it what it was to be told; some of it comes once the new one listens.
          let kept = notifications.count > 1 && random.next() % 2 == 0 ? [notifications[notifications.count - 1]] : []
          for id in seen.catchUp(table, at: now) { delivered[id, default: 0] += 1 }
          notifications = kept
        }
      }
      for id in seen.catchUp(table, at: 1_000) { delivered[id, default: 0] += 1 }
      #expect(table.allSatisfy { delivered[$0] == 1 })
    }
  }
#endif
