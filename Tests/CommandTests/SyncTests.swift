import HostKit
import Testing

@Suite struct SyncTests {
  @Test func deliversAndSaysSo() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.ok.rawValue)
        let summary = try JSONValue(parsing: ending.output.joined())
        #expect(summary["ok"] == true)
        #expect(summary["outbox_depth"] == 0)
        #expect(summary["cursor"] == "1")
        #expect(summary["by"] == "sync")
      }
    }
  }

  @Test func saysThatTheServerRefusedAWrite() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        try PlainSQL.run(database, "INSERT INTO todos(title, owner_id) VALUES ('x', 'somebody else')")
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.workLeft.rawValue)
        let summary = try JSONValue(parsing: ending.output.joined())
        #expect(summary["ok"] == false)
        #expect(summary["rejected"] == 1)
        // It was journalled; a sync that has nothing new to report is fine again.
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        let status = try await Binaries.doorbell("status", "--config", file, "--json")
        #expect(try JSONValue(parsing: status.output.joined())["rejections"] == 1)
      }
    }
  }

  @Test func asksTheRunThatHasTheDatabase() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await RunningGateway.with(configuration: file) { _ in
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x'), ('y')")
          let ending = try await Binaries.doorbell("sync", "--config", file)
          #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
          let summary = try JSONValue(parsing: ending.output.joined())
          #expect(summary["by"] == "run")
          #expect(summary["outbox_depth"] == 0)
        }
      }
    }
  }

  @Test func anotherUsersDatabaseIsNotTouched() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        let bob = stack.configuration(
          database: database, session: #"{"email": "bob@example.com", "password": "bob"}"#)
        try scratch.write("a.json", bob)
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.workLeft.rawValue)
        #expect(try JSONValue(parsing: ending.output.joined())["blocked"] == "identity_changed")
        #expect(ending.errors.contains { $0.contains("belongs to another user") })
      }
    }
  }
}
