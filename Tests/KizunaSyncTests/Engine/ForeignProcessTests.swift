import Glibc
import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// The `sqlite3` program beside a running engine.
@Suite(.timeLimit(.minutes(10))) struct ForeignProcessTests {
  static let program = "/usr/bin/sqlite3"
  static let hasShell = access(program, X_OK) == 0

  private func shell(_ path: String, _ sql: String) async throws {
    let child = try ChildProcess(
      executable: Self.program, arguments: ["-cmd", ".timeout 5000", path, sql + "; SELECT 'done';"])
    let ending = await child.ending()
    // `.timeout` prints what it set.
    #expect(ending.output.last == "done", "\(sql): \(ending.errors)")
  }

  @Test(.enabled(if: hasShell, "the sqlite3 program is not installed"))
  func aWriteOfTheShellIsNoticedQueuedAndSent() async throws {
    try await withScratchFolder { folder in
      let path = folder + "/a.db"
      let noticed = Once()
      let http = ScriptedHTTP(EngineFixture.appliesAll)
      let engine = try await SyncEngine.open(
        config: EngineFixture.config(path: path), http: http, clock: SystemClock.shared, log: .none
      ) { event in
        if case .queueDepth(let depth) = event, depth > 0 { noticed.raise() }
      }
      try await shell(path, "ALTER TABLE todos ADD COLUMN title; INSERT INTO todos(title) VALUES ('by hand')")
      // Nothing asks the engine: the event comes by itself.
      await noticed.wait()
      let queued = try await engine.inspect()["queued"]?.arrayValue ?? []
      #expect(queued.map { $0["columns"] } == [["title": "by hand", "owner_id": .string(owner)]])
      #expect(try await engine.read { try $0.rows("todos").map { $0.columns["owner_id"] } } == [.string(owner)])
      try await engine.sync()
      #expect(try await engine.outboxDepth() == 0)
      await engine.dispose()
    }
  }

  @Test(.enabled(if: hasShell, "the sqlite3 program is not installed"))
  func aWriterThatHoldsTheLockOnlyDelaysTheRun() async throws {
    try await withScratchFolder { folder in
      let path = folder + "/a.db"
      let fixture = try await EngineFixture(EngineFixture.config(path: path))
      let other = try Database(DatabaseConfiguration(path: path, role: .visitor))
      try other.run("BEGIN IMMEDIATE")
      try other.run("INSERT INTO todos(id) VALUES ('theirs')")
      fixture.http.enqueue(EngineFixture.page(cursor: "4", rows: [EngineFixture.row("a", ["v": 1])]))
      async let pull: Void = fixture.engine.pullOnce()
      // Readers are not kept waiting.
      #expect(try await fixture.engine.read { try $0.rows("todos").isEmpty })
      try other.run("COMMIT")
      try await pull
      #expect(try await fixture.engine.read { try $0.rows("todos").map(\.pk).sorted() } == ["a", "theirs"])
      other.close()
      await fixture.engine.dispose()
    }
  }

  /// A file is copied between any two commits of a run, as a killed process would leave it; each copy must go on.
  @Test func everyStateBetweenCommitsIsAPlaceToGoOnFrom() async throws {
    try await withScratchFolder { folder in
      let path = folder + "/a.db"
      let copies = Locked<[String]>([])
      let server = SyncServer(configuration: .init(tables: ["todos": .init(bucketColumn: "owner_id")]))
      for index in 0..<5 {
        try await server.upsert("todos", "s\(index)", ["owner_id": .string(owner), "v": .int(index)])
      }
      let transport = SyncServerTransport(server)
      let copy: @Sendable () -> Void = {
        // What is on disk now, by SQLite's own means, so that the copy is one moment.
        let target = copies.withLock { copies -> String in
          copies.append("\(folder)/copy\(copies.count).db")
          return copies.last!
        }
        guard let source = try? Database(DatabaseConfiguration(path: path, role: .reader)) else { return }
        try? source.run("VACUUM INTO ?", .text(target))
        source.close()
      }
      let spy = SpyTransport(transport, around: copy)
      let config = EngineFixture.config(path: path, limit: 2)
      let engine = try await SyncEngine.open(config: config, http: spy, clock: SystemClock.shared, log: .none) { _ in
        copy()
      }
      for index in 0..<3 {
        try await engine.apply(
          LocalWrite(table: "todos", pk: "c\(index)", op: .insert, columns: ["id": .string("c\(index)")]))
      }
      try await engine.apply(
        LocalWrite(table: "todos", pk: "s1", op: .update, transforms: ["v": ["op": "increment", "by": 10]]))
      try await engine.sync()
      try await engine.sync()
      await engine.dispose()
      let files = copies.withLock { $0 }
      #expect(files.count > 10)
      for file in files {
        let fresh = try await SyncEngine.open(
          config: EngineFixture.config(path: file, limit: 2), http: transport, clock: SystemClock.shared, log: .none
        ) { _ in }
        try await fresh.sync()
        #expect(try await fresh.outboxDepth() == 0)
        let rows = try await fresh.read { try $0.rows("todos") }
        for row in rows {
          #expect(await server.row("todos", row.pk)?["v"] == row.columns["v"], "\(file) \(row.pk)")
        }
        let expected = await server.rowCount("todos")
        #expect(rows.count == expected, "\(file)")
        await fresh.dispose()
      }
      // The increment was sent from many copies and counted once.
      #expect(await server.row("todos", "s1")?["v"] == 11)
    }
  }
}

/// Calls something before and after each request.
private final class SpyTransport: HTTPTransport {
  private let inner: any HTTPTransport
  private let around: @Sendable () -> Void

  init(_ inner: any HTTPTransport, around: @escaping @Sendable () -> Void) {
    self.inner = inner
    self.around = around
  }

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    around()
    defer { around() }
    return try await inner.send(request)
  }
}

/// Raised once, waited for by one task.
private final class Once: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() {
    (stream, continuation) = AsyncStream<Void>.makeStream()
  }

  func raise() { continuation.yield() }

  func wait() async {
    for await _ in stream { return }
  }
}
