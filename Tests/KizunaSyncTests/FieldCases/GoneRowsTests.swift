import HostKit
import KizunaSyncTestSupport
import SyncServer
import Testing

@testable import KizunaSync

/// Rows that should have gone, and those that must not come back.
@Suite struct GoneRowsTests {
  /// Rows that their reader may be taken from without a tombstone: what a policy does that looks something up.
  private static let hideable = [
    "todos": SyncTable(
      policy: .owner(column: "reader"), columns: ["reader": .text, "title": .text, "n": .integer],
      includesKeyColumns: true)
  ]

  private func hostWithTenRows(_ folder: String, interval: Double? = nil) throws -> FieldHost {
    let host = try FieldHost(
      folder, tables: ["todos": KizunaSyncTableConfig(columns: ["title": .text, "n": .number])],
      served: Self.hideable, limit: 4)
    for index in 0..<10 { try host.serve("k\(index)", ["reader": .string(owner), "n": .int(index)]) }
    return host
  }

  private func revoke(_ host: FieldHost, _ keys: String...) throws {
    for key in keys { try host.serve(key, ["reader": "somebody else"]) }
  }

  /// F21: rows that access was withdrawn from go with a sweep, and with no other pull.
  @Test func aSweepRemovesWhatTheServerDoesNotShow() async throws {
    try await withScratchFolder { folder in
      let host = try hostWithTenRows(folder)
      try await host.engine { engine in
        try await engine.sync()
        try revoke(host, "k1", "k4", "k9")
        try await engine.sync()
        #expect(try host.texts("SELECT count(*) FROM todos") == ["10"])
        // Nobody ever sees an empty table.
        let least = Locked(10)
        StatementSpy.watch(host.path) { connection, isWrite in
          guard isWrite else { return }
          let count = Int((try? host.texts("SELECT count(*) FROM todos"))?.first ?? "") ?? 0
          least.withLock { $0 = min($0, count) }
        }
        try await engine.sweep()
        StatementSpy.watch(host.path, nil)
        #expect(least.withLock { $0 } >= 7)
        #expect(
          try host.texts("SELECT id FROM todos ORDER BY id") == ["k0", "k2", "k3", "k5", "k6", "k7", "k8"])
        #expect(host.events("store.hidden_rows_kept").isEmpty)
        // Afterwards it is a replica like any other.
        try host.serve("k0", ["title": "again"])
        try await engine.sync()
        #expect(try host.texts("SELECT title FROM todos WHERE id = 'k0'") == ["again"])
      }
    }
  }

  /// F21: a row with a change that was not sent stays and is reported; once the server has decided it goes.
  @Test func aSweepKeepsWhatWasChangedHere() async throws {
    try await withScratchFolder { folder in
      let host = try hostWithTenRows(folder)
      try await host.engine { engine in
        try await engine.sync()
        try revoke(host, "k1", "k4", "k9")
        // Another program writes while the sweep is under way, so the change is not among those pushed before.
        let isWritten = Locked(false)
        host.transport.beforeRequest.withLock {
          $0 = { request in
            if request.path.hasSuffix("pull"),
              isWritten.withLock({ was in
                defer { was = true }; return !was
              })
            {
              try host.run("UPDATE todos SET title = 'mine' WHERE id = 'k4'")
            }
          }
        }
        try await engine.sweep()
        #expect(try host.texts("SELECT count(*) FROM todos") == ["8"])
        #expect(try host.texts("SELECT title FROM todos WHERE id = 'k4'") == ["mine"])
        #expect(host.events("store.hidden_rows_kept").map { $0["rows"] } == [1])
        #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).hiddenRowsKept == 1)

        try await engine.sync()
        #expect(try host.texts("SELECT count(*) FROM todos") == ["7"])
        #expect(
          try await engine.rejections(includeDismissed: false).map { "\($0.reason) \($0.pk)" } == ["RLS_DENIED k4"])
        try await engine.sweep()
        #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).hiddenRowsKept == 0)
      }
    }
  }

  /// F21: by itself at the interval, counted across restarts, and when another program asks.
  @Test func sweepsComeInTime() async throws {
    try await withScratchFolder { folder in
      let host = try hostWithTenRows(folder)
      func open() async throws -> SyncEngine {
        var config = EngineFixture.config(
          ["todos": KizunaSyncTableConfig(columns: ["title": .text, "n": .number])], path: host.path)
        config.visibilitySweepInterval = 86_400
        return try await SyncEngine.open(
          config: config, http: host.transport, clock: host.clock, log: .none, emit: { _ in })
      }
      func rows() throws -> [String] { try host.texts("SELECT count(*) FROM todos") }
      var engine = try await open()
      try await engine.sync()
      try revoke(host, "k1")
      await host.clock.advance(by: .seconds(80_000))
      try await engine.sync()
      await engine.dispose()
      #expect(try rows() == ["10"])

      engine = try await open()
      await host.clock.advance(by: .seconds(6_399))
      try await engine.sync()
      #expect(try rows() == ["10"])
      await host.clock.advance(by: .seconds(2))
      try await engine.sync()
      #expect(try rows() == ["9"])
      #expect(try KizunaSyncReplicaStatus.read(databasePath: host.path).lastSweepAt == host.clock.wallMilliseconds)

      try revoke(host, "k2")
      try KizunaSyncReplicaStatus.askForSweep(databasePath: host.path)
      try await engine.sync()
      #expect(try rows() == ["8"])
      try revoke(host, "k3")
      try await engine.sync()
      #expect(try rows() == ["8"])
      await engine.dispose()
    }
  }

  /// F27: the host was away longer than tombstones are kept. Its unsent edits arrive, no deleted row comes back, and
  /// nobody who reads ever finds an empty table.
  @Test func aForgottenCheckpointBringsNoRowBack() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder, tables: ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["n": .number])],
        served: FieldHost.todos(["n": .integer]), limit: 60)
      for index in 0..<150 { try host.serve("k\(index)", ["n": .int(index)]) }
      try await host.engine { engine in
        try await engine.sync()
        for index in 0..<100 { try host.delete("k\(index)") }
        host.transport.server.withLock { $0.reap(now: nil) }
        for index in 100..<105 { try host.run("UPDATE todos SET n = -1 WHERE id = 'k\(index)'") }
        let least = Locked(150)
        StatementSpy.watch(host.path) { _, isWrite in
          guard isWrite else { return }
          let count = Int((try? host.texts("SELECT count(*) FROM todos"))?.first ?? "") ?? 0
          least.withLock { $0 = min($0, count) }
        }
        try await engine.sync()
        StatementSpy.watch(host.path, nil)
        #expect(least.withLock { $0 } >= 50)
        let rows = try host.texts("SELECT id || ' ' || n FROM todos")
        #expect(rows.count == 50 && host.transport.server.withLock { $0.rowCount("todos") } == 50)
        for index in 100..<150 {
          let n = index < 105 ? -1 : index
          #expect(rows.contains("k\(index) \(n)") && host.served("k\(index)")?["n"] == .int(n))
        }
        #expect(try await engine.outboxDepth() == 0)
      }
    }
  }

  /// F27: an edit of a row that was deleted while the host was away does not bring it back; it is kept in the journal.
  @Test func anEditOfADeletedRowIsReported() async throws {
    try await withScratchFolder { folder in
      let host = try FieldHost(
        folder, tables: ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), columns: ["n": .number])],
        served: FieldHost.todos(["n": .integer]))
      for index in 0..<3 { try host.serve("k\(index)", ["n": .int(index)]) }
      try await host.engine { engine in
        try await engine.sync()
        try host.delete("k1")
        host.transport.server.withLock { $0.reap(now: nil) }
        try host.run("UPDATE todos SET n = -1 WHERE id = 'k1'")
        try await engine.sync()
        #expect(try host.texts("SELECT id FROM todos ORDER BY id") == ["k0", "k2"])
        #expect(try await engine.rejections(includeDismissed: false).map(\.pk) == ["k1"])
      }
    }
  }
}
