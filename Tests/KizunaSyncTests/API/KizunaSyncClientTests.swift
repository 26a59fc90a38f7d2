import Foundation
import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Testing

@Suite struct KizunaSyncClientTests {
  @Test func everythingNeedsAnOpenClient() async throws {
    let client = KizunaSyncClient()
    let calls: [(String, () async throws -> Void)] = [
      ("from", { _ = try client.from("notes") }), ("sync", { try await client.sync() }),
      ("pullOnce", { try await client.pullOnce() }), ("pushOnce", { try await client.pushOnce() }),
      ("outboxDepth", { _ = try await client.outboxDepth() }),
      ("setAccessToken", { try await client.setAccessToken("t") }),
      ("setBucket", { try await client.setBucket([:]) }), ("checkpoint", { _ = try await client.checkpoint() }),
      ("seedCheckpoint", { try await client.seedCheckpoint("0") }), ("reset", { _ = try await client.reset() }),
      ("on", { _ = try await client.on { _ in } }), ("rejections", { _ = try await client.rejections() }),
      ("dismissRejection", { _ = try await client.dismissRejection("x") }),
      ("overwrites", { _ = try await client.overwrites() }),
      ("dismissOverwrite", { _ = try await client.dismissOverwrite(1) }),
      ("inspect", { _ = try await client.inspect() }), ("inspector", { _ = try await client.inspector() }),
      ("apply", { try await client.apply(table: "notes", pk: "1", op: .insert) }),
      ("applyWhere", { _ = try await client.applyWhere(table: "notes", op: .delete, filters: []) }),
      ("query", { _ = try await client.query(table: "notes") }),
    ]
    for (name, call) in calls {
      let error = await #expect(throws: KizunaSyncError.self, "\(name)") { try await call() }
      #expect(error?.code == "ENGINE_UNAVAILABLE", "\(name)")
    }
    await client.dispose()
  }

  @Test func aRowTravelsToTheServerAndToAnotherClient() async throws {
    let here = try await OpenClient()
    try await here.client.from("notes").insert(["body": "hi", "n": 1, "done": false, "tags": ["a"]])
    #expect(try await here.client.outboxDepth() == 1)
    try await here.client.sync()
    #expect(try await here.client.outboxDepth() == 0)

    let there = KizunaSyncClient(http: here.transport)
    try await there.create(
      .init(
        tables: ["notes": .init(bucket: .byOwner("owner_id"))],
        remote: .init(
          url: "http://localhost", publishableKey: "key", accessToken: TestToken.user(OpenClient.user))))
    try await there.sync()
    let row = try #require(try await there.from("notes").select().eq("body", "hi").single() as? [String: Any])
    #expect(row["n"] as? Int == 1)
    #expect(row["owner_id"] as? String == OpenClient.user)
    #expect(type(of: try #require(row["done"])) == Bool.self)
    #expect(row["tags"] as? [String] == ["a"])
    #expect(try await there.checkpoint().cursor != "0")
    await there.dispose()
    await here.client.dispose()
  }

  @Test func aTableThatIsNotConfiguredIsUnknownAtOnce() async throws {
    let open = try await OpenClient()
    let error = #expect(throws: KizunaSyncError.self) { try open.client.from("nothing") }
    #expect(error?.code == "UNKNOWN_TABLE")
    await open.client.dispose()
  }

  @Test func applyChecksWhatItIsGiven() async throws {
    let open = try await OpenClient()
    let id = RandomUUID.make()
    for (table, pk) in [("", "1"), ("notes", "")] {
      let error = await #expect(throws: KizunaSyncError.self) {
        try await open.client.apply(table: table, pk: pk, op: .insert)
      }
      #expect(error?.code == "LOCAL_UNSUPPORTED")
    }
    try await open.client.apply(
      table: "facts", pk: RandomUUID.make(), op: .insert, columns: ["v": 1], mutationId: id)
    let again = await #expect(throws: KizunaSyncError.self) {
      try await open.client.apply(
        table: "facts", pk: RandomUUID.make(), op: .insert, columns: ["v": 1], mutationId: id.uppercased())
    }
    #expect(again?.code == "LOCAL_CONSTRAINT")
    let malformed = await #expect(throws: KizunaSyncError.self) {
      try await open.client.apply(table: "facts", pk: "1", op: .insert, mutationId: "m1")
    }
    #expect(malformed?.code == "LOCAL_UNSUPPORTED")
    await open.client.dispose()
  }

  @Test func withoutATokenSyncSaysThatNobodyIsSignedIn() async throws {
    let open = try await OpenClient(
      tables: ["facts": .init()], signedIn: false)
    let error = await #expect(throws: KizunaSyncError.self) { try await open.client.sync() }
    #expect(error?.code == "REMOTE")
    #expect(error?.message.hasPrefix("AUTH_SESSION_MISSING") == true)
    #expect(open.transport.calls.isEmpty)
    await open.client.dispose()
  }

  @Test func anotherUserBlocksUntilAReset() async throws {
    let open = try await OpenClient()
    try await open.client.from("notes").insert(["body": "mine"])
    let events = Locked<[KizunaSyncEngineEvent]>([])
    _ = try await open.client.on { event in events.withLock { $0.append(event) } }
    try await open.client.setAccessToken(TestToken.user(OpenClient.other))
    var checkpoint = try await open.client.checkpoint()
    #expect(checkpoint.softBlocked)
    #expect(checkpoint.softBlockReason == "identity_changed")
    try await open.client.sync()
    #expect(open.transport.calls.isEmpty)
    #expect(try await open.client.reset() == [])
    checkpoint = try await open.client.checkpoint()
    #expect(!checkpoint.softBlocked)
    #expect(try await open.client.outboxDepth() == 0)
    #expect(try await (open.client.from("notes").select().execute() as? [[String: Any]])?.isEmpty == true)
    try await open.client.sync()
    #expect(open.transport.calls.count == 1)
    await open.client.dispose()
    #expect(events.withLock { $0.contains(.resetRequired(reason: "identity_changed")) })
    #expect(events.withLock { !$0.contains { if case .queueDepth = $0 { true } else { false } } })
  }

  @Test func aSecondCreateEndsTheSubscriptions() async throws {
    let open = try await OpenClient()
    let heard = Locked(0)
    _ = try await open.client.on { _ in heard.withLock { $0 += 1 } }
    try await open.client.create(.init(tables: ["facts": .init()]))
    try await open.client.from("facts").insert(["v": 1])
    #expect(throws: KizunaSyncError.self) { try open.client.from("notes") }
    await open.client.dispose()
    #expect(heard.withLock { $0 } == 0)
  }

  @Test func aHandlerMayCallTheClientBackAndHearsThingsInOrder() async throws {
    let open = try await OpenClient()
    let (titles, done) = AsyncStream<String>.makeStream()
    let client = open.client
    let end = try await client.on { event in
      guard event == .localChanged else { return }
      Task {
        let rows = try await client.from("notes").select().order("n").execute() as? [[String: Any]]
        done.yield(rows?.compactMap { $0["body"] as? String }.joined(separator: ",") ?? "")
      }
    }
    try await client.from("notes").insert(["body": "a", "n": 1])
    var iterator = titles.makeAsyncIterator()
    #expect(await iterator.next() == "a")
    try await client.from("notes").insert(["body": "b", "n": 2])
    #expect(await iterator.next() == "a,b")
    end()
    await client.dispose()
  }

  @Test func aCancelledSyncLosesNothing() async throws {
    let open = try await OpenClient()
    try await open.client.from("notes").insert(["body": "x"])
    let held = open.transport.faults.holdNext()
    let sync = Task { try await open.client.sync() }
    await held.reached()
    sync.cancel()
    await #expect(throws: CancellationError.self) { try await sync.value }
    held.release()
    #expect(try await open.client.outboxDepth() == 1)
    try await open.client.sync()
    #expect(try await open.client.outboxDepth() == 0)
    #expect(await open.server.rowCount("notes") == 1)
    await open.client.dispose()
  }

  @Test func disposeCutsOffTheRequestInFlightAndKeepsItsWrites() async throws {
    let folder = ScratchFolder()
    defer { folder.remove() }
    let open = try await OpenClient()
    let config = KizunaSyncClientConfig(
      tables: ["notes": .init(bucket: .byOwner("owner_id"))], databasePath: folder.path + "/replica.db",
      remote: .init(url: "http://localhost", publishableKey: "key", accessToken: TestToken.user(OpenClient.user)))
    try await open.client.create(config)
    try await open.client.from("notes").insert(["body": "x"])
    let held = open.transport.faults.holdNext(.beforeAnswer)
    let sync = Task { try await open.client.sync() }
    await held.reached()
    await open.client.dispose()
    held.release()
    await #expect(throws: (any Error).self) { try await sync.value }
    // The lock is free, the write is still queued, and the server decides it once.
    try await open.client.create(config)
    #expect(try await open.client.outboxDepth() == 1)
    try await open.client.sync()
    #expect(try await open.client.outboxDepth() == 0)
    #expect(await open.server.rowCount("notes") == 1)
    await open.client.dispose()
  }

  @Test func concurrentCreatesComeOneAfterTheOther() async throws {
    let client = KizunaSyncClient()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for name in ["a", "b", "c", "d"] {
        group.addTask { try await client.create(.init(tables: [name: .init()])) }
      }
      try await group.waitForAll()
    }
    #expect(["a", "b", "c", "d"].filter { (try? client.from($0)) != nil }.count == 1)
    await client.dispose()
    await client.dispose()
  }

  @Test func theInspectorShowsTheQueueAndTheRefusals() async throws {
    let open = try await OpenClient()
    let inspector = try await open.client.inspector()
    #expect(try await open.client.inspector() === inspector)
    try await open.client.apply(
      table: "notes", pk: RandomUUID.make(), op: .insert, columns: ["owner_id": OpenClient.other, "body": "not mine"])
    var snapshot = try await inspector.snapshot()
    #expect(snapshot.depth == 1)
    #expect(snapshot.queued.count == 1)
    #expect(RandomUUID.isWellFormed(snapshot.clientId))
    let changes = Locked(0)
    let end = inspector.subscribe { changes.withLock { $0 += 1 } }
    try await open.client.sync()
    snapshot = try await inspector.snapshot()
    #expect(snapshot.depth == 0)
    let rejections = try await open.client.rejections()
    #expect(rejections.map(\.reason) == ["RLS_DENIED"])
    #expect(try await open.client.dismissRejection(rejections[0].mutationId))
    #expect(try await open.client.dismissRejection(rejections[0].mutationId) == false)
    #expect(try await open.client.rejections().isEmpty)
    #expect(try await open.client.rejections(includeDismissed: true).count == 1)
    await open.client.dispose()
    end()
    #expect(inspector.verdicts().map(\.reason) == ["RLS_DENIED"])
    #expect(changes.withLock { $0 } > 0)
    inspector.clear()
    #expect(inspector.verdicts().isEmpty)
  }
}
