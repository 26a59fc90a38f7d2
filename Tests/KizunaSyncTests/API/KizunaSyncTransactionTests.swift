import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Testing

@Suite struct KizunaSyncTransactionTests {
  struct Changed: Error {}

  func bodies(_ client: KizunaSyncClient) async throws -> [String] {
    let rows = try await client.from("notes").select().order("body").execute() as? [[String: Any]]
    return rows?.compactMap { $0["body"] as? String } ?? []
  }

  @Test func itsWritesTravelAsOneBatch() async throws {
    let open = try await OpenClient()
    let id = try await open.client.transaction { transaction in
      let id = try transaction.insert(into: "notes", ["body": "a"])
      try transaction.insert(into: "notes", ["body": "b", "extra": 1])
      try transaction.apply(table: "notes", pk: id, op: .update, columns: ["body": "c"])
      #expect(try transaction.query(table: "notes").count == 2)
      return id
    }
    #expect(try await bodies(open.client) == ["b", "c"])
    try await open.client.sync()
    let pushes = open.transport.bodies(of: "push")
    #expect(pushes.count == 1)
    #expect(pushes.first?["batch"]?["atomic"] == true)
    #expect(pushes.first?["batch"]?["mutations"]?.arrayValue?.count == 3)
    #expect(await open.server.row("notes", id)?["body"] == "c")
    await open.client.dispose()
  }

  /// Writes by filter are part of the batch, and see what came before them.
  @Test func itsWritesByFilterTravelWithIt() async throws {
    let open = try await OpenClient()
    for body in ["a", "b", "c"] { try await open.client.from("notes").insert(["body": body]) }
    try await open.client.sync()
    let changed = try await open.client.transaction { transaction in
      try transaction.insert(into: "notes", ["body": "d"])
      try transaction.applyWhere(
        table: "notes", op: .delete, filters: [KizunaSyncQuery.eq("body", "a")])
      return try transaction.applyWhere(
        table: "notes", op: .update, filters: [KizunaSyncQuery.gte("body", "c")],
        columns: ["extra": 7]
      ).count
    }
    #expect(changed == 2)
    #expect(try await bodies(open.client) == ["b", "c", "d"])
    try await open.client.sync()
    let last = try #require(open.transport.bodies(of: "push").last?["batch"])
    #expect(last["atomic"] == true && last["mutations"]?.arrayValue?.count == 4)
    #expect(await open.server.rowCount("notes") == 3)
    await open.client.dispose()
  }

  @Test func aRefusalTakesAllBack() async throws {
    let open = try await OpenClient()
    let aborted = Locked<[KizunaSyncEngineEvent]>([])
    _ = try await open.client.on { event in
      if case .batchAborted = event { aborted.withLock { $0.append(event) } }
    }
    try await open.client.transaction { transaction in
      try transaction.insert(into: "notes", ["body": "mine"])
      try transaction.insert(into: "notes", ["body": "not mine", "owner_id": OpenClient.other])
    }
    try await open.client.sync()
    #expect(try await bodies(open.client) == [])
    #expect(await open.server.rowCount("notes") == 0)
    #expect(try await open.client.rejections().map(\.kind) == ["BATCH_ABORTED"])
    await open.client.dispose()
    #expect(aborted.withLock { $0.count } == 1)
  }

  @Test func anErrorUndoesItLocally() async throws {
    let open = try await OpenClient()
    await #expect(throws: Changed.self) {
      try await open.client.transaction { transaction in
        try transaction.insert(into: "notes", ["body": "a"])
        throw Changed()
      }
    }
    #expect(try await bodies(open.client) == [])
    #expect(try await open.client.outboxDepth() == 0)
    await open.client.dispose()
  }

  @Test func twoTransactionsAreTwoBatches() async throws {
    let open = try await OpenClient()
    for body in ["a", "b"] {
      _ = try await open.client.transaction { try $0.insert(into: "notes", ["body": body]) }
    }
    try await open.client.from("notes").insert(["body": "c"])
    try await open.client.sync()
    #expect(
      open.transport.bodies(of: "push").map { $0["batch"]?["atomic"]?.boolValue } == [true, true, false])
    await open.client.dispose()
  }
}
