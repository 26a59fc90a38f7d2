import CSQLite
import HostKit
import KizunaSyncTestSupport
import SyncServer
import Testing

@testable import KizunaSync

/// F25: the process ends, or the statement fails, at every write statement of a push, a pull and an acknowledgement.
/// Rows, tombstones and the cursor that covers them stay together, and no write is lost or counted twice.
@Suite struct AbortedStatementTests {
  /// One statement in so many is made to fail; the long run makes it 1. (Kills are tried at all of them.)
  static let stride = max(1, ProgramCount.of("KIZUNA_ABORT_STRIDE", otherwise: 10))

  enum Pass: CaseIterable, Sendable {
    /// The first pull into an empty file, in several pages.
    case firstPull
    /// A push with applied, refused and all-or-nothing writes, then a pull with rows and tombstones.
    case exchange
    /// The same when the server has forgotten the checkpoint and rows were deleted meanwhile.
    case forgottenCheckpoint
  }

  private static let keys = (0..<7).map { "s\($0)" }

  private struct World {
    let path: String
    let transport: ModelTransport

    init(_ folder: String) {
      StatementSpy.prepare()
      path = folder + "/replica.db"
      let table = SyncTable(
        bucketColumn: "owner_id", columns: ["owner_id": .text, "title": .text, "n": .integer], includesKeyColumns: true)
      transport = ModelTransport(
        SyncServerState(configuration: SyncServerConfiguration(tables: ["todos": table])))
    }

    func open() async throws -> SyncEngine {
      try await SyncEngine.open(
        config: EngineFixture.config(
          [
            "todos": KizunaSyncTableConfig(
              bucket: .byOwner("owner_id"), columns: ["title": .text, "n": .number, "owner_id": .text])
          ], path: path, limit: 3),
        http: transport, clock: VirtualClock(), log: .none, emit: { _ in })
    }

    func serve(_ writes: [SyncWrite]) throws {
      try transport.server.withLock { try $0.apply(writes, now: 0) }
    }

    func upsert(_ key: String, _ title: String) -> SyncWrite {
      .upsert(table: "todos", pk: key, columns: ["owner_id": .string(owner), "title": .string(title), "n": 1])
    }

    /// Everything up to where the statements begin that are cut.
    func prepare(_ pass: Pass) async throws {
      try serve(AbortedStatementTests.keys.map { upsert($0, "first") } + [.delete(table: "todos", pk: "s6")])
      guard pass != .firstPull else { return }
      let engine = try await open()
      try await engine.sync()
      try await engine.write { session in
        for key in ["s0", "s1"] {
          _ = try session.apply(
            LocalWrite(table: "todos", pk: key, op: .update, transforms: ["n": ["op": "increment", "by": 10]]))
        }
        _ = try session.apply(
          LocalWrite(
            table: "todos", pk: "s2", op: .update, columns: ["title": "never"], precondition: ["title": "no such"]))
      }
      for (key, group) in [("g0", "good"), ("g1", "good"), ("b0", "bad")] {
        try await engine.apply(
          LocalWrite(table: "todos", pk: key, op: .insert, columns: ["id": .string(key), "n": 5], group: group))
      }
      try await engine.apply(
        LocalWrite(
          table: "todos", pk: "s3", op: .update, columns: ["title": "never"], precondition: ["title": "no such"],
          group: "bad"))
      await engine.dispose()
      let sql = try PlainDatabase(path)
      try sql.run(
        """
        INSERT INTO todos(id, title, n) VALUES ('new', 'by sql', 3);
        DELETE FROM todos WHERE id = 's4';
        INSERT INTO todos(id, title) VALUES ('s4', 'used again');
        UPDATE todos SET title = 'mine' WHERE id = 's5';
        """)
      sql.close()
      try serve([
        upsert("s1", "second"), .delete(table: "todos", pk: "s3"), upsert("t0", "there"), upsert("t1", "there"),
        .delete(table: "todos", pk: "s2"), upsert("t2", "there"), upsert("s0", "second"),
      ])
      if pass == .forgottenCheckpoint { transport.server.withLock { $0.reap(now: nil) } }
    }

    /// What the server holds, in a form that does not depend on the order of seqs.
    func served() -> [String: RowMap] {
      transport.server.withLock { server in
        let keys = AbortedStatementTests.keys + ["new", "g0", "g1", "b0", "t0", "t1", "t2"]
        return Dictionary(uniqueKeysWithValues: keys.compactMap { key in server.row("todos", key).map { (key, $0) } })
      }
    }

    /// Starts plainly, runs once, and compares.
    func converge(_ wanted: [String: RowMap], refused: [String], _ context: Comment) async throws {
      let engine = try await open()
      try await engine.sync()
      try await check(engine, wanted, refused: refused, context)
      await engine.dispose()
    }

    func check(_ engine: SyncEngine, _ wanted: [String: RowMap], refused: [String], _ context: Comment) async throws {
      let served = served()
      #expect(served == wanted, context)
      let rows = try await engine.read { try $0.rows("todos") }
      #expect(Dictionary(uniqueKeysWithValues: rows.map { ($0.pk, $0.columns) }) == served, context)
      #expect(try await engine.outboxDepth() == 0, context)
      #expect(
        try await engine.rejections(includeDismissed: false).map { "\($0.kind) \($0.pk)" }.sorted() == refused, context)
      let state = try await engine.withReplica { replica in
        (try replica.brokenInvariants(), try replica.database.map("PRAGMA integrity_check") { $0.string(0) })
      }
      #expect(state.0 == [] && state.1 == ["ok"], context)
    }
  }

  /// What an undisturbed run ends with.
  private func undisturbed(_ pass: Pass) async throws -> (rows: [String: RowMap], refused: [String], writes: Int) {
    try await withScratchFolder { folder in
      let world = World(folder)
      try await world.prepare(pass)
      let writes = Locked(0)
      StatementSpy.watch(world.path) { _, isWrite in if isWrite { writes.withLock { $0 += 1 } } }
      let engine = try await world.open()
      try await engine.sync()
      StatementSpy.watch(world.path, nil)
      let refused = try await engine.rejections(includeDismissed: false).map { "\($0.kind) \($0.pk)" }.sorted()
      await engine.dispose()
      return (world.served(), refused, writes.withLock { $0 })
    }
  }

  @Test(arguments: Pass.allCases)
  func aProcessThatDiesAtAnyStatementGoesOn(pass: Pass) async throws {
    let wanted = try await undisturbed(pass)
    if pass != .firstPull { #expect(wanted.refused == ["BATCH_ABORTED s3", "REJECTED s2"]) }
    try await withScratchFolder { folder in
      let world = World(folder)
      try await world.prepare(pass)
      let recorder = KillRecorder(world.path, world.transport)
      recorder.start()
      let engine = try await world.open()
      try await engine.sync()
      await engine.dispose()
      recorder.stop()
      #expect(recorder.moments > 100)
      #expect(recorder.states.count > 5)
      for (index, state) in recorder.states.enumerated() {
        try state.files.restore(world.path)
        world.transport.server.withLock { $0 = state.server }
        try await world.converge(wanted.rows, refused: wanted.refused, "\(pass), state \(index)")
      }
    }
  }

  /// The engine itself goes on after the failure, so what it remembers must fit what was undone.
  @Test(arguments: Pass.allCases)
  func aStatementThatFailsIsUndoneAndTriedAgain(pass: Pass) async throws {
    let wanted = try await undisturbed(pass)
    var failed = 0
    for number in Swift.stride(from: 1, through: wanted.writes, by: Self.stride) {
      try await withScratchFolder { folder in
        let world = World(folder)
        try await world.prepare(pass)
        let left = Locked(number)
        StatementSpy.watch(world.path) { connection, isWrite in
          guard isWrite,
            left.withLock({
              $0 -= 1; return $0 == 0
            })
          else { return }
          sqlite3_interrupt(connection)
        }
        var engine: SyncEngine?
        do {
          engine = try await world.open()
          try await engine?.sync()
        } catch is KizunaSyncError {
          failed += 1
        }
        StatementSpy.watch(world.path, nil)
        guard let engine else { return try await world.converge(wanted.rows, refused: wanted.refused, "at \(number)") }
        try await engine.sync()
        try await world.check(engine, wanted.rows, refused: wanted.refused, "\(pass), statement \(number)")
        await engine.dispose()
      }
    }
    #expect(failed * 2 > wanted.writes / Self.stride, "most of them end the run")
  }
}
