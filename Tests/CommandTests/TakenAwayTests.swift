import Glibc
import HostKit
import Testing

/// What a running gateway does when somebody takes its files or its tables away.
@Suite struct TakenAwayTests {
  private func withGateway(
    _ body: (_ database: String, _ configuration: String, RunningGateway) async throws -> Void
  ) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await RunningGateway.with(configuration: file) { gateway in
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
          try await eventually("the push") {
            try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_pushed") == ["1"]
          }
          try await body(database, file, gateway)
        }
      }
    }
  }

  @Test func aDeletedDatabaseEndsTheRun() async throws {
    try await withGateway { database, file, gateway in
      unlink(database)
      let ending = await gateway.process.ending()
      #expect(ending.code == ExitCode.database.rawValue)
      let last = try JSONValue(parsing: ending.errors.last ?? "")
      #expect(last["event"] == "command.failed" && last["code"] == 7, "\(ending.errors.suffix(3))")
      #expect(last["text"]?.stringValue?.hasPrefix("the database \(database) was deleted or moved away") == true)
      #expect(access(database, F_OK) != 0)
      let sync = try await Binaries.doorbell("sync", "--config", file)
      #expect(sync.code == ExitCode.ok.rawValue, "\(sync.errors)")
      #expect(try PlainSQL.run(database, "SELECT title FROM todos") == ["x"])
    }
  }

  @Test func aReplacedDatabaseEndsTheRun() async throws {
    try await withGateway { database, _, gateway in
      try PlainSQL.run(database + ".new", "CREATE TABLE other(a); INSERT INTO other VALUES (1)")
      rename(database + ".new", database)
      let ending = await gateway.process.ending()
      #expect(ending.code == ExitCode.database.rawValue)
      #expect(ending.errors.last?.contains("was replaced by another file") == true, "\(ending.errors.suffix(3))")
      #expect(try PlainSQL.run(database, "SELECT a FROM other") == ["1"])
    }
  }

  @Test func aSecondRunIsRefusedThoughTheLockFileWasDeleted() async throws {
    try await withGateway { database, file, gateway in
      unlink(database + "-kizuna.lock")
      _ = try await gateway.process.line(of: .errors, within: .seconds(150)) { $0.contains("store.lock_taken_again") }
      let second = try await Binaries.doorbell("run", "--config", file, "--log-level", "error")
      #expect(second.code == ExitCode.locked.rawValue)
      #expect(second.errors.first?.contains("process \(gateway.process.pid) ") == true, "\(second.errors)")
    }
  }

  @Test func aDroppedTableComesBackWhileTheRunGoesOn() async throws {
    try await withGateway { database, file, gateway in
      try PlainSQL.run(database, "DROP TABLE todos")
      let status = try await Binaries.doorbell("status", "--config", file)
      #expect(status.code == ExitCode.ok.rawValue, "\(status.errors)")
      #expect(status.output.contains { $0.hasPrefix("table       todos") })
      _ = try await gateway.process.line(of: .errors, within: .seconds(150)) {
        $0.contains("store.table_made_again") && $0.contains("todos")
      }
      try await eventually("the row") {
        (try? PlainSQL.run(database, "SELECT title FROM todos")) == ["x"]
      }
      let after = try await Binaries.doorbell("status", "--config", file, "--json")
      #expect(try JSONValue(parsing: after.output.joined())["tables"]?["todos"]?["rows"] == 1)
      #expect(try JSONValue(parsing: after.output.joined())["problem"] == .null)
    }
  }
}
