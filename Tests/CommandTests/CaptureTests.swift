import HostKit
import Testing

@Suite struct CaptureTests {
  @Test func aColumnIsDroppedBetweenOffAndOn() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        try PlainSQL.run(
          database,
          "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT, done INTEGER, spare TEXT); PRAGMA journal_mode=WAL"
        )
        let file = try scratch.write("a.json", stack.configuration(database: database))
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        let refused = #expect(throws: (any Error).self) {
          try PlainSQL.run(database, "ALTER TABLE todos DROP COLUMN spare")
        }
        #expect(String(describing: refused).contains("_kizunasync_todos_"))

        let off = try await Binaries.doorbell("capture", "off", "--config", file)
        #expect(off.code == ExitCode.ok.rawValue, "\(off.errors)")
        #expect(off.output.joined().contains("kizuna-doorbell capture on"))
        let write = #expect(throws: (any Error).self) {
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('lost?')")
        }
        #expect(String(describing: write).contains("kizuna-doorbell capture on"))
        try PlainSQL.run(database, "ALTER TABLE todos DROP COLUMN spare")

        let on = try await Binaries.doorbell("capture", "on", "--config", file)
        #expect(on.code == ExitCode.ok.rawValue, "\(on.errors)")
        try PlainSQL.run(database, "INSERT INTO todos(id, title) VALUES ('k', 'kept')")
        let sync = try await Binaries.doorbell("sync", "--config", file)
        #expect(sync.code == ExitCode.ok.rawValue)
        #expect(try PlainSQL.run(database, "SELECT title FROM todos") == ["kept"])
      }
    }
  }

  @Test func aRunThatHoldsTheDatabaseKeepsItsCapture() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await RunningGateway.with(configuration: file) { _ in
          let off = try await Binaries.doorbell("capture", "off", "--config", file)
          #expect(off.code == ExitCode.locked.rawValue)
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('seen')")
        }
      }
    }
  }
}
