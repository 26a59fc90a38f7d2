import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Transfers of many pages over links and servers that fail now and then, or are slow.
@Suite struct BrokenTransferTests {
  /// A server of ten pages, `1` to `10` after `0`, that meets each call with `fault` first.
  private static func pages(
    _ fault: @escaping @Sendable (_ cursor: String, _ limit: Int?) throws -> HTTPResponse?
  ) -> ScriptedHTTP {
    ScriptedHTTP { request in
      guard request.path.hasSuffix("pull") else { return try await EngineFixture.appliesAll(request) }
      let cursor = request.json?["cursor"]?.stringValue ?? ""
      if let answer = try fault(cursor, request.json?["limit"]?.intValue) { return answer }
      let next = (Int(cursor) ?? 0) + 1
      return EngineFixture.page(
        cursor: "\(next)", rows: [EngineFixture.row("k\(next)", ["v": .int(next)])], hasMore: next < 10)
    }
  }

  private func staged(_ engine: SyncEngine) async throws -> Int64? {
    try await engine.withReplica { try $0.database.value("SELECT count(*) FROM _kizunasync_pages")?.integer }
  }

  private static let slow = HTTPError(.timeout, "it did not answer completely", isTooSlow: true)

  enum Fault: CaseIterable, Sendable {
    case lost, unavailable, busy, statement, portal, expiredToken

    func answer() throws -> HTTPResponse? {
      switch self {
      case .lost: throw HTTPError(.connectionLost, "lost")
      case .unavailable: HTTPResponse(status: 503)
      case .busy: HTTPResponse(status: 429)
      case .statement: .json(["code": "57014", "message": "canceled"], status: 500)
      case .portal: HTTPResponse(status: 200, body: Array("<html>".utf8))
      case .expiredToken: .json(["code": "PGRST303", "message": "JWT expired"], status: 401)
      }
    }
  }

  /// One request in three fails, and each run gets further all the same.
  @Test(arguments: Fault.allCases) func whatHasArrivedIsKept(fault: Fault) async throws {
    let count = Locked(0)
    let asked = Locked<[String]>([])
    let fixture = try await EngineFixture(
      http: Self.pages { cursor, _ in
        asked.withLock { $0.append(cursor) }
        let number = count.withLock { count in
          count += 1
          return count
        }
        return number % 3 == 0 ? try fault.answer() : nil
      })
    var runs = 0
    while try await fixture.engine.checkpoint().cursor != "10", runs < 10 {
      try? await fixture.engine.sync()
      runs += 1
    }
    #expect(try await fixture.engine.checkpoint().cursor == "10")
    #expect(asked.withLock { $0.filter { $0 == "0" }.count } == 1)
    #expect(try await fixture.engine.read { try $0.rows("todos").count } == 10)
    await fixture.engine.dispose()
  }

  /// A server that will answer the same way every time, or does nothing else for long, may mean the page itself.
  @Test(arguments: [true, false]) func aTransferThatCannotGoOnStartsAgain(isPermanent: Bool) async throws {
    let asked = Locked<[String]>([])
    let fixture = try await EngineFixture(
      http: Self.pages { cursor, _ in
        asked.withLock { $0.append(cursor) }
        guard cursor == "4", asked.withLock({ $0.filter { $0 == "4" }.count }) < 4 else { return nil }
        return .json(["code": isPermanent ? "22023" : "XX000", "message": "no"], status: isPermanent ? 400 : 500)
      })
    await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
    #expect(try await staged(fixture.engine) == (isPermanent ? 0 : 4))
    if !isPermanent {
      await fixture.clock.advance(by: .seconds(599))
      await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(try await staged(fixture.engine) == 4)
      await fixture.clock.advance(by: .seconds(1))
      await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(try await staged(fixture.engine) == 0)
    }
    await fixture.engine.dispose()
  }

  /// What was received of a transfer outlives a restart, and nothing that makes it somebody else's.
  @Test(arguments: ["restart", "reset", "bucket", "identity", "seed", "cancelled"])
  func whatEndsATransferDropsIt(event: String) async throws {
    try await withScratchFolder { folder in
      let tables = ["todos": KizunaSyncTableConfig(bucket: .byColumn("list"))]
      let config = EngineFixture.config(tables, path: "\(folder)/r.db")
      let http = Self.pages { cursor, _ in
        if cursor == "3" { throw HTTPError(.connectionLost, "lost") }
        return nil
      }
      var fixture = try await EngineFixture(config, http: http)
      try await fixture.engine.setBucket(["list": "a"])
      await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(try await staged(fixture.engine) == 3)
      switch event {
      case "restart":
        await fixture.engine.dispose()
        fixture = try await EngineFixture(config, http: http)
      case "reset": try await fixture.engine.reset()
      case "bucket": try await fixture.engine.setBucket(["list": "b"])
      case "identity": try await fixture.engine.setAccessToken(TestToken.user("somebody else"))
      case "seed": try await fixture.engine.seedCheckpoint("7")
      default:
        let engine = fixture.engine
        let held = http.faults.holdNext()
        let run = Task { try await engine.sync() }
        await held.reached()
        run.cancel()
        _ = try? await run.value
      }
      #expect(try await staged(fixture.engine) == (["restart", "cancelled"].contains(event) ? 3 : 0))
      await fixture.engine.dispose()
    }
  }

  // MARK: Sweeps

  /// A sweep that does not get on must not keep from anybody what is new.
  @Test(arguments: [true, false]) func aSweepThatFailsIsPutOff(isPermanent: Bool) async throws {
    let isSweeping = Locked(false)
    let fixture = try await EngineFixture(
      http: ScriptedHTTP { request in
        let cursor = request.json?["cursor"]?.stringValue ?? ""
        if cursor == "0", isSweeping.withLock({ $0 }) {
          return .json(["code": isPermanent ? "22000" : "57014", "message": "no"], status: isPermanent ? 400 : 500)
        }
        let next = (Int(cursor) ?? 0) + 1
        return EngineFixture.page(cursor: "\(next)", rows: [EngineFixture.row("k\(next)", ["v": .int(next)])])
      })
    try await fixture.engine.sync()
    isSweeping.withLock { $0 = true }
    await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sweep() }
    if !isPermanent {
      #expect(try await fixture.engine.checkpoint().cursor == "1")
      await fixture.clock.advance(by: .seconds(600))
      await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
    }
    #expect(try await fixture.engine.checkpoint().cursor == "2")
    try await fixture.engine.sync()
    #expect(try await fixture.engine.read { try $0.rows("todos").count } == 3)
    await fixture.engine.dispose()
  }

  @Test func aSweepGoesOnWhereItWasInterrupted() async throws {
    let fails = Locked<Set<String>>([])
    let asked = Locked<[String]>([])
    let fixture = try await EngineFixture(
      http: Self.pages { cursor, _ in
        asked.withLock { $0.append(cursor) }
        if fails.withLock({ $0.remove(cursor) }) != nil { throw HTTPError(.connectionLost, "lost") }
        return cursor == "10" ? EngineFixture.page(cursor: "10") : nil
      })
    try await fixture.engine.sync()
    fails.withLock { $0 = ["2", "5", "8"] }
    asked.withLock { $0 = [] }
    await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sweep() }
    for _ in 0..<2 { await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() } }
    try await fixture.engine.sync()
    #expect(asked.withLock { $0 }.filter { $0 == "0" }.count == 1)
    #expect(try await fixture.engine.withReplica { try !$0.isRehydrating() })
    await fixture.engine.dispose()
  }

  // MARK: Tables that are read again alone

  @Test func aTableIsReadOnWhereItWasInterrupted() async throws {
    let fails = Locked<Set<String>>(["3", "6"])
    let asked = Locked<[String]>([])
    let fixture = try await EngineFixture(
      http: ScriptedHTTP { request in
        guard request.json?["client_id"] == nil else { return EngineFixture.page(cursor: "90") }
        let cursor = request.json?["cursor"]?.stringValue ?? ""
        asked.withLock { $0.append(cursor) }
        if fails.withLock({ $0.remove(cursor) }) != nil { throw HTTPError(.connectionLost, "lost") }
        let next = (Int(cursor) ?? 0) + 1
        return EngineFixture.page(
          cursor: "\(next)", rows: [EngineFixture.row("k\(next)", ["v": .int(next)])], hasMore: next < 10)
      })
    try await fixture.engine.sync()
    try await fixture.engine.withReplica { replica in
      try replica.bareTransaction(sync: .normal, foreignKeys: false) {
        try replica.changeRereads { $0.ask("todos", keep: .nothing) }
      }
    }
    for _ in 0..<2 { await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() } }
    try await fixture.engine.sync()
    #expect(asked.withLock { $0 } == ["0", "1", "2", "3", "3", "4", "5", "6", "6", "7", "8", "9"])
    #expect(try await fixture.engine.read { try $0.rows("todos").count } == 10)
    await fixture.engine.dispose()
  }

  // MARK: Slow links

  private func write(_ fixture: EngineFixture, _ key: String, _ size: Int) async throws {
    try await fixture.engine.apply(
      LocalWrite(
        table: "todos", pk: key, op: .insert,
        columns: ["id": .string(key), "title": .string(String(repeating: "x", count: size))]))
  }

  @Test func requestsBecomeAsSmallAsTheLinkIsSlow() async throws {
    let fixture = try await EngineFixture(
      http: ScriptedHTTP { request in
        if (request.body?.count ?? 0) > 1 << 20 { throw Self.slow }
        return try await EngineFixture.appliesAll(request)
      })
    for index in 0..<600 { try await write(fixture, "k\(index)", 10_000) }
    try await fixture.engine.sync()
    #expect(try await fixture.engine.outboxDepth() == 0)
    #expect(fixture.http.calls.filter { ($0.body?.count ?? 0) > 1 << 20 }.count <= PushPolicy.slowRequests + 1)
    await fixture.engine.dispose()
  }

  @Test func pagesBecomeAsSmallAsTheLinkIsSlow() async throws {
    let fixture = try await EngineFixture(
      http: Self.pages { _, limit in
        if limit ?? 500 > 100 { throw Self.slow }
        return nil
      })
    try await fixture.engine.sync()
    #expect(try await fixture.engine.checkpoint().cursor == "10")
    await fixture.engine.dispose()
  }

  /// Each such request costs its whole time.
  @Test func aServerThatHangsEndsTheRunSoon() async throws {
    let fixture = try await EngineFixture(http: ScriptedHTTP { _ in throw Self.slow })
    for index in 0..<600 { try await write(fixture, "k\(index)", 10) }
    for run in 1...2 {
      await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(fixture.http.calls.count == run * (PushPolicy.slowRequests + 1))
    }
    // What did not get through in the last run is not tried again as it was.
    let counts = fixture.http.calls.compactMap { $0.json?["batch"]?["mutations"]?.arrayValue?.count }
    #expect(counts.first == 500 && zip(counts, counts.dropFirst()).allSatisfy { $1 <= $0 / 2 }, "\(counts)")
    await fixture.engine.dispose()
  }

  /// A head that never gets through does not keep the pull from going on, in this process or another.
  @Test(arguments: [1, 3]) func oneWriteThatIsTooSlowDoesNotBlockThePull(writes: Int) async throws {
    try await withScratchFolder { folder in
      let config = EngineFixture.config(path: "\(folder)/r.db")
      let handler: ScriptedHTTP.Handler = { request in
        if request.path.hasSuffix("push") { throw Self.slow }
        return EngineFixture.page(cursor: "1", rows: [EngineFixture.row("s", ["v": 1])])
      }
      var fixture = try await EngineFixture(config, http: ScriptedHTTP(handler))
      for index in 0..<writes { try await write(fixture, "k\(index)", 10) }
      await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(!fixture.http.calls.contains { $0.path.hasSuffix("pull") })
      let wall = fixture.clock.wallMilliseconds
      await fixture.engine.dispose()
      // Another process, ten minutes later.
      fixture = try await EngineFixture(config, http: ScriptedHTTP(handler))
      await fixture.clock.advance(by: .seconds(600))
      #expect(fixture.clock.wallMilliseconds == wall + 600_000)
      await #expect(throws: KizunaSyncError.self) { try await fixture.engine.sync() }
      #expect(try await fixture.engine.checkpoint().cursor == "1")
      #expect(try await fixture.engine.outboxDepth() == writes)
      await fixture.engine.dispose()
    }
  }
}
