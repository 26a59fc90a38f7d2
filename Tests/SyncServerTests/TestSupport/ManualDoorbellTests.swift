import HostKit
import KizunaSyncTestSupport
import Testing

@Suite struct ManualDoorbellTests {
  private final class Counter: Sendable {
    let count = Locked(0)
    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
  }

  @Test func ringsThoseWhoListenToTheTable() {
    let doorbell = ManualDoorbell()
    let (todos, notes) = (Counter(), Counter())
    let first = doorbell.subscribe(topics: ["kizunasync:todos"]) { todos.add() }
    _ = doorbell.subscribe(topics: ["kizunasync:notes", "kizunasync:todos"]) { notes.add() }
    #expect(doorbell.ring(table: "todos") == 2)
    #expect(doorbell.ring(table: "notes") == 1)
    first.cancel()
    #expect(doorbell.ring() == 1)
    #expect((todos.value, notes.value) == (1, 3))
    #expect(doorbell.subscriptions.map(\.isActive) == [false, true])
  }

  @Test func losesRingsAndFailsSubscriptions() {
    let doorbell = ManualDoorbell()
    let heard = Counter()
    doorbell.failNext()
    _ = doorbell.subscribe(topics: ["kizunasync:todos"]) { heard.add() }
    #expect(doorbell.ring() == 0)
    _ = doorbell.subscribe(topics: ["kizunasync:todos"]) { heard.add() }
    doorbell.loseNext(2)
    #expect([doorbell.ring(), doorbell.ring(), doorbell.ring()] == [0, 0, 1])
    #expect(doorbell.ringCount == 4)
    #expect(heard.value == 1)
  }

  @Test func followsAServersCommits() async throws {
    let server = SyncServer(configuration: .init(tables: ["todos": SyncTable(bucketColumn: "owner_id")]))
    let doorbell = ManualDoorbell()
    await doorbell.follow(server)
    let heard = Counter()
    _ = doorbell.subscribe(topics: ["kizunasync:todos"]) { heard.add() }
    try await server.upsert("todos", "a", ["owner_id": "u", "title": "x"])
    try await server.upsert("todos", "a", ["title": "x"])
    #expect(heard.value == 1, "a write that changes nothing rings nobody")
  }
}
