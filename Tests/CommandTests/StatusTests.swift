import HostKit
import Testing

@Suite struct StatusTests {
  @Test func tellsTheStateBesideARun() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await RunningGateway.with(configuration: file) { gateway in
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
          try await eventually("the push") {
            try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_pushed") == ["1"]
          }
          let ending = try await Binaries.doorbell("status", "--config", file, "--json")
          #expect(ending.code == ExitCode.ok.rawValue)
          let status = try JSONValue(parsing: ending.output.joined())
          #expect(status["running"] == true)
          #expect(status["pid"]?.intValue == Int(gateway.process.pid))
          #expect(status["outbox_depth"] == 0)
          #expect(status["tables"]?["todos"]?["rows"] == 1)
          #expect(status["last_sync"]?.stringValue?.hasSuffix("Z") == true)
          #expect(status["blocked"] == .null)
        }
        let text = try await Binaries.doorbell("status", "--config", file)
        #expect(text.output.contains { $0.hasPrefix("database") && $0.contains("not synchronised by any process now") })
        #expect(text.output.contains { $0.hasPrefix("outbox") && $0.contains("0 writes") })
      }
    }
  }

  @Test func saysThatThereIsNothingYet() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        let ending = try await Binaries.doorbell("status", "--config", file)
        #expect(ending.code == ExitCode.database.rawValue)
        #expect(ending.errors.count == 1)
        #expect(ending.errors.first?.contains("the first run or sync makes it") == true)
      }
    }
  }
}
