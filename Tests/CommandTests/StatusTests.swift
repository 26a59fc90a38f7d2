import Glibc
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
          try await eventually("the doorbell") {
            let ending = try await Binaries.doorbell("status", "--config", file, "--json")
            return try JSONValue(parsing: ending.output.joined())["doorbell"]?["state"] == "ready"
          }
          let text = try await Binaries.doorbell("status", "--config", file)
          #expect(text.output.contains { $0.hasPrefix("doorbell    ready since ") && $0.hasSuffix("Z") })
        }
        let after = try await Binaries.doorbell("status", "--config", file, "--json")
        #expect(try JSONValue(parsing: after.output.joined())["doorbell"] == .null)
        let text = try await Binaries.doorbell("status", "--config", file)
        #expect(text.output.contains { $0.hasPrefix("database") && $0.contains("not synchronised by any process now") })
        #expect(text.output.contains { $0.hasPrefix("outbox") && $0.contains("0 writes") })
      }
    }
  }

  /// Who looks after a host need not be who may read its secrets.
  @Test func whatNeedsNoServerNeedsNoSecrets() async throws {
    try await SyncedHost.with { stack, scratch, database, _ in
      let session = #"{"email": "\#(Stack.email)", "passwordFile": "\#(scratch.path)/gone"}"#
      let text = stack.configuration(database: database, session: session)
        .replacing("\"\(stack.publishableKey)\"", with: "{\"env\": \"NOT_THERE\"}")
      let file = try scratch.write("b.json", text)
      let verbs = [["status"], ["outbox", "list"], ["outbox", "discard", "--all"], ["capture", "off"], ["reset"]]
      for verb in verbs + [["capture", "on"]] {
        let process = try ChildProcess(executable: Binaries.doorbell, arguments: verb + ["--config", file])
        let ending = await process.ending()
        #expect(ending.code == ExitCode.ok.rawValue, "\(verb): \(ending.errors)")
      }
      let ending = try await Binaries.doorbell("sync", "--config", file)
      #expect(ending.code == ExitCode.configuration.rawValue)
      #expect(ending.errors.contains { $0.contains("passwordFile") && $0.contains("cannot be read") })
      #expect(ending.errors.contains { $0.contains("publishableKey") && $0.contains("NOT_THERE is not set") })
    }
  }

  /// What went wrong last is told with its reason, by the log while it happens and by status until a run ends well.
  @Test func tellsWhyTheLastRunFailed() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        func lastError() async throws -> JSONValue? {
          let ending = try await Binaries.doorbell("status", "--config", file, "--json")
          return try JSONValue(parsing: ending.output.joined())["last_error"]
        }
        try await RunningGateway.with(configuration: file) { gateway in
          #expect(try await lastError() == .null)
          await stack.process.stop()
          gateway.process.send(signal: SIGHUP)
          let line = try await gateway.process.line(of: .errors, within: .seconds(150)) {
            // A run that the stop cut off fails otherwise.
            $0.contains("gateway.sync_failed") && $0.contains("connection refused")
          }
          let event = try JSONValue(parsing: line)
          #expect(event["code"] == "REMOTE")
          #expect(event["kind"] == "unreachable")
          #expect(event["message"]?.stringValue?.hasSuffix("connection refused") == true)
        }
        // Also when nobody is at work any more.
        let error = try await lastError()
        #expect(error?["code"] == "REMOTE")
        #expect(error?["message"]?.stringValue?.hasSuffix("connection refused") == true)
        #expect(error?["at"]?.stringValue?.hasSuffix("Z") == true)
        let text = try await Binaries.doorbell("status", "--config", file)
        #expect(text.output.contains { $0.hasPrefix("last error") && $0.hasSuffix("connection refused") })
      }
    }
  }

  @Test func tellsHowLongTheOldestWriteWaitsAndWhy() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        func oldest() async throws -> JSONValue? {
          let ending = try await Binaries.doorbell("status", "--config", file, "--json")
          return try JSONValue(parsing: ending.output.joined())["oldest_write"]
        }
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        #expect(try await oldest() == .null)
        try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
        #expect(try await oldest()?["attempts"] == 0)
        await stack.process.stop()
        for _ in 0..<2 {
          #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.unreachable.rawValue)
        }
        let write = try await oldest()
        #expect(write?["table"] == "todos" && write?["age_s"]?.intValue != nil && write?["attempts"] == 2)
        #expect(write?["last_error"]?.stringValue?.contains("connection refused") == true)
        let text = try await Binaries.doorbell("status", "--config", file)
        #expect(text.output.contains { $0.contains("s ago, table todos, ") && $0.contains("last error: ") })
      }
    }
  }

  @Test func aSuccessClearsTheLastError() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = scratch.path + "/a.json"
        for (url, code) in [(stack.url, ExitCode.ok), ("http://127.0.0.1:9", .unreachable), (stack.url, .ok)] {
          try scratch.write("a.json", stack.configuration(database: database, url: url))
          #expect(try await Binaries.doorbell("sync", "--config", file).code == code.rawValue)
          let ending = try await Binaries.doorbell("status", "--config", file, "--json")
          let error = try JSONValue(parsing: ending.output.joined())["last_error"]
          #expect((error == .null) == (code == .ok), "\(ending.output)")
        }
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

  /// SQLite wants to write beside a database even to read it.
  @Test(arguments: [true, false])
  func permissionToReadIsEnough(isRunning: Bool) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database), mode: 0o644)
        chmod(scratch.path, 0o755)
        func read() async throws {
          let process = try await Unprivileged.start(["status", "--config", file, "--json"], mayNotWrite: scratch.path)
          let ending = await process.ending()
          #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
          let status = try JSONValue(parsing: ending.output.joined())
          #expect(status["tables"]?["todos"]?["rows"] == 1)
          #expect(status["running"] == .bool(isRunning))
          // Without its log SQLite says "delete" of the file.
          let doctor = try await Unprivileged.start(["doctor", "--config", file, "--json"], mayNotWrite: scratch.path)
          let checks = try JSONValue(parsing: await doctor.ending().output.joined())["checks"]?.arrayValue ?? []
          let log = checks.first { $0["check"] == "write-ahead log" }
          #expect(log?["status"] == "ok" && log?["text"]?.stringValue?.contains("delete") == false, "\(checks)")
        }
        try await RunningGateway.with(configuration: file) { _ in
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
          if isRunning { try await read() }
        }
        if !isRunning { try await read() }
        chmod(scratch.path, 0o700)
      }
    }
  }

  /// The database notes it once a minute only.
  @Test func tellsWhenTheLastSyncWas() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        func last() async throws -> String? {
          let ending = try await Binaries.doorbell("status", "--config", file, "--json")
          return try JSONValue(parsing: ending.output.joined())["last_sync"]?.stringValue
        }
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        let first = try await last()
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        let second = try await last()
        #expect(first != nil && second != nil && first != second)
        let text = try await Binaries.doorbell("status", "--config", file)
        #expect(text.output.contains { $0.hasPrefix("last sync") && $0.hasSuffix("Z") }, "\(text.output)")
        // What the run noted may be gone; then the database is believed, as far as it knows.
        unlink(scratch.path + "/a.db-kizuna.run")
        let rough = try await Binaries.doorbell("status", "--config", file)
        #expect(rough.output.contains { $0.hasPrefix("last sync") && $0.hasSuffix("or up to a minute later") })
      }
    }
  }
}
