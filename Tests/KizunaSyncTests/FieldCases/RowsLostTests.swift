import HTTPClient
import HostKit
import KizunaSyncTestSupport
import SyncServer
import Testing

@testable import KizunaSync

/// Rows that never arrived in other products.
@Suite struct RowsLostTests {
  /// F05: a transaction that began earlier commits later, with a stamp behind the cursor. The server's cursor tells of
  /// such holes; it is kept and returned as it came, and what falls into one arrives with the next pass.
  @Test func aRowThatWasCommittedLateArrivesWithTheNextPass() async throws {
    try await withScratchFolder { folder in
      let path = folder + "/a.db"
      let app = try PlainDatabase(path)
      try app.run(
        """
        CREATE TABLE todos(id TEXT PRIMARY KEY, title TEXT, owner_id TEXT);
        CREATE TABLE fired(id TEXT);
        CREATE TRIGGER app AFTER UPDATE ON todos BEGIN INSERT INTO fired VALUES (NEW.id); END;
        """)
      let fixture = try await EngineFixture(EngineFixture.config(path: path))
      let row = { EngineFixture.row($0, ["title": .string($1)]) }
      fixture.http.enqueue(
        EngineFixture.page(cursor: "90~12.17", rows: [row("late", "old"), row("a", "x"), row("b", "x")]))
      try await fixture.engine.sync()
      // The window is read again: the late row with its older stamp, and its neighbours as they were.
      fixture.http.enqueue(
        EngineFixture.page(cursor: "95~17", rows: [row("late", "new"), row("a", "x"), row("b", "x")]))
      try await fixture.engine.sync()
      fixture.http.enqueue(EngineFixture.page(cursor: "95"))
      try await fixture.engine.sync()
      #expect(fixture.http.calls.map { $0.json?["cursor"] } == ["0", "90~12.17", "95~17"])
      #expect(try app.texts("SELECT id FROM fired") == ["late"])
      #expect(try app.texts("SELECT id || title FROM todos ORDER BY id") == ["ax", "bx", "latenew"])
      await fixture.engine.dispose()
    }
  }

  /// F07: the server cuts answers shorter than asked for. A short page is no end, and an incomplete read deletes nothing.
  @Test func aShortPageIsNoEnd() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder, tables: FieldHost.todos, served: FieldHost.todos(["n": .integer]), maxPullScan: 100, limit: 500)
      try host.transport.server.withLock { server in
        try server.apply(
          (0..<10_000).map {
            .upsert(table: "todos", pk: "k\($0)", columns: ["owner_id": .string(owner), "n": .int($0)])
          }, now: 0)
      }
      try await host.engine { engine in
        try await engine.sync()
        #expect(try host.texts("SELECT count(*), sum(n) FROM todos") == ["10000"])
        #expect(host.transport.bodies.withLock { $0.count } >= 100)
        // Reading everything again, and breaking off in the middle, takes nothing away.
        let left = Locked(40)
        host.transport.beforeRequest.withLock {
          $0 = { _ in
            if left.withLock({
              $0 -= 1; return $0 == 0
            }) {
              throw HTTPError(.connectionLost, "cut off")
            }
          }
        }
        await #expect(throws: KizunaSyncError.self) { try await engine.sweep() }
        #expect(try host.texts("SELECT count(*) FROM todos") == ["10000"])
        try await engine.sync()
        #expect(try host.texts("SELECT count(*) FROM todos") == ["10000"])
      }
    }
  }

  /// F11: the host's clock is wrong by hours. No decision about what to fetch or which write wins reads it.
  @Test(arguments: [0, 7200, -7200] as [Int64])
  func aWrongClockChangesNothing(seconds: Int64) async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder, tables: FieldHost.todos, served: FieldHost.todos(["n": .integer, "title": .text]),
        wallMilliseconds: 1_767_225_600_000 + seconds * 1000)
      try host.serve("a", ["n": 1, "title": "first"])
      try host.serve("b", ["n": 1])
      try await host.engine { engine in
        try await engine.sync()
        try host.run("UPDATE todos SET n = 2 WHERE id = 'a'; INSERT INTO todos(id, n) VALUES ('c', 3)")
        try host.serve("a", ["n": 9, "title": "theirs"])
        try host.delete("b")
        try host.serve("d", ["n": 4])
        try await engine.sync()
        try host.serve("a", ["title": "last"])
        try await engine.sync()
      }
      // Ours arrived later, so it wins; the clock has no say.
      #expect(
        try host.texts("SELECT id || ' ' || n || ' ' || coalesce(title, '-') FROM todos ORDER BY id")
          == ["a 2 last", "c 3 -", "d 4 -"])
      #expect(host.served("a")?["n"] == 2 && host.served("b") == nil && host.served("c")?["n"] == 3)
    }
  }

  /// F11: a clock that is more than five seconds off the server's is reported, once an hour.
  @Test func aWrongClockIsReportedOnceAnHour() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(folder, tables: FieldHost.todos, served: FieldHost.todos([:]))
      // The clock of the host stands at 2026-01-01T00:00:00Z.
      func date(_ text: String) { host.transport.headers.withLock { $0 = [HTTPHeader("Date", text)] } }
      try await host.engine { engine in
        date("Thu, 01 Jan 2026 00:00:04 GMT")
        try await engine.sync()
        #expect(host.events("sync.clock_off").isEmpty)
        date("Wed, 31 Dec 2025 22:00:00 GMT")
        for _ in 0..<3 { try await engine.sync() }
        #expect(host.events("sync.clock_off").map { $0["seconds"] } == [7200])
        await host.clock.advance(by: .seconds(3601))
        try await engine.sync()
        #expect(host.events("sync.clock_off").count == 2)
        #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).clockOffset == 10_801)
        await host.clock.advance(by: .seconds(3601))
        date("Thu, 01 Jan 2026 02:00:02 GMT")
        try await engine.sync()
        #expect(host.events("sync.clock_off").count == 2)
      }
      #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).clockOffset == nil)
    }
  }
}
