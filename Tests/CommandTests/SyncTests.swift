import Glibc
import HostKit
import KizunaSync
import Testing

@Suite struct SyncTests {
  @Test func deliversAndSaysSo() async throws {
    try await SyncedHost.with { _, _, database, file in
      try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
      let ending = try await Binaries.doorbell("sync", "--config", file)
      #expect(ending.code == ExitCode.ok.rawValue)
      let summary = try JSONValue(parsing: ending.output.joined())
      #expect(summary["ok"] == true)
      #expect(summary["outbox_depth"] == 0)
      // Seqs of a development server count on from the time of its making.
      #expect(try #require(summary["cursor"]?.stringValue.flatMap { Int64($0) }) > 1_000_000_000_000_000)
      #expect(summary["by"] == "sync")
    }
  }

  @Test func saysThatTheServerRefusedAWrite() async throws {
    try await SyncedHost.with { _, _, database, file in
      try PlainSQL.run(database, "INSERT INTO todos(title, owner_id) VALUES ('x', 'somebody else')")
      let ending = try await Binaries.doorbell("sync", "--config", file)
      #expect(ending.code == ExitCode.workLeft.rawValue)
      let summary = try JSONValue(parsing: ending.output.joined())
      #expect(summary["ok"] == false)
      #expect(summary["rejected"] == 1)
      // It is held until somebody decides.
      let later = try await Binaries.doorbell("sync", "--config", file)
      #expect(later.code == ExitCode.workLeft.rawValue)
      let again = try JSONValue(parsing: later.output.joined())
      #expect(again["ok"] == false && again["rejected"] == 0 && again["rejections"] == 1)
      #expect(later.errors.contains { $0.contains("outbox list") }, "\(later.errors)")
      let status = try await Binaries.doorbell("status", "--config", file, "--json")
      #expect(try JSONValue(parsing: status.output.joined())["rejections"] == 1)
      #expect(
        try await Binaries.doorbell("outbox", "discard", "--all", "--config", file).code == ExitCode.ok.rawValue)
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
    }
  }

  /// Each leaves something for somebody to do, and says so, whoever did the sync.
  @Test(
    arguments: [
      "UPDATE todos SET title = CAST(x'c328' AS TEXT)",
      "INSERT INTO _kizunasync_parked VALUES ('todos', 'p', '{}', 'UNIQUE constraint failed')",
    ], [false, true])
  func saysThatWorkIsLeft(script: String, isBesideRun: Bool) async throws {
    try await SyncedHost.with { _, _, database, file in
      try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
      func check() async throws {
        try PlainSQL.run(database, script)
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.workLeft.rawValue, "\(ending.output)")
        #expect(try JSONValue(parsing: ending.output.joined())["ok"] == false)
        #expect(ending.errors.contains { $0.contains("outbox list") }, "\(ending.errors)")
      }
      if isBesideRun {
        try await RunningGateway.with(configuration: file) { _ in try await check() }
      } else {
        try await check()
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

  // MARK: Beside a run

  /// Runs `sync` beside a gateway, and expects one sentence.
  private func fails(_ file: String, _ code: ExitCode, saying words: String...) async throws {
    let ending = try await Binaries.doorbell("sync", "--config", file, "--log-level", "error")
    #expect(ending.code == code.rawValue, "\(ending.output) \(ending.errors)")
    #expect(ending.output.isEmpty)
    #expect(ending.errors.count == 1, "\(ending.errors)")
    for word in words { #expect(ending.errors.first?.contains(word) == true, "\(ending.errors)") }
  }

  /// The queue is empty, so nothing but the end of a run tells whether anything was synchronised.
  @Test func aRunThatCannotReachTheServerIsNoSuccess() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        try await RunningGateway.with(configuration: file) { _ in
          await stack.process.stop()
          try await fails(file, .unreachable, saying: "connection refused")
          // Again: the answer is that of another run, not the last one's.
          try await fails(file, .unreachable, saying: "connection refused")
        }
      }
    }
  }

  @Test func aRunThatFindsTheDatabaseLockedIsNoSuccess() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write(
          "a.json", stack.configuration(database: database, more: "\"pollInterval\": 3600,"))
        let other = try scratch.write("b.json", stack.configuration(database: scratch.path + "/b.db"))
        try await RunningGateway.with(configuration: file) { _ in
          let lock = try LockingProgram(database)
          #expect(try await Binaries.doorbell("sync", "--config", other).code == ExitCode.ok.rawValue)
          try PlainSQL.run(scratch.path + "/b.db", "INSERT INTO todos(title) VALUES ('x')")
          #expect(try await Binaries.doorbell("sync", "--config", other).code == ExitCode.ok.rawValue)
          try await fails(file, .database, saying: "write lock")
          lock.end()
          #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        }
      }
    }
  }

  @Test func aRunWhoseDiskIsFullIsNoSuccess() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        guard let disk = try await SmallDisk(scratch.path + "/disk") else { return }
        let file = try scratch.write("a.json", stack.configuration(database: disk.path + "/a.db"))
        let other = try scratch.write("b.json", stack.configuration(database: scratch.path + "/b.db"))
        try await RunningGateway.with(configuration: file) { _ in
          try disk.fill()
          #expect(try await Binaries.doorbell("sync", "--config", other).code == ExitCode.ok.rawValue)
          try PlainSQL.run(
            scratch.path + "/b.db",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
              + "INSERT INTO todos(title) SELECT printf('%.4000c', 'x') FROM n")
          #expect(try await Binaries.doorbell("sync", "--config", other).code == ExitCode.ok.rawValue)
          try await fails(file, .database, saying: "is full")
          let status = try await Binaries.doorbell("status", "--config", file, "--json")
          let error = try JSONValue(parsing: status.output.joined())["last_error"]
          #expect(error?["code"] == "STORE")
          #expect(error?["message"]?.stringValue?.contains("is full") == true)
          disk.free()
          #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        }
        await disk.unmount()
      }
    }
  }

  @Test func onlyARunThatBeganAfterTheQuestionAnswers() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        try await RunningGateway.with(configuration: file) { gateway in
          gateway.process.send(signal: SIGSTOP)
          let sync = try ChildProcess(executable: Binaries.doorbell, arguments: ["sync", "--config", file])
          _ = try await sync.line(of: .errors, within: .seconds(150)) { $0.contains("sync.asked") }
          gateway.process.send(signal: SIGCONT)
          let ending = await sync.ending()
          #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
          #expect(try JSONValue(parsing: ending.output.joined())["by"] == "run")
        }
      }
    }
  }

  /// It ends before it does what it was asked: then the database is free, and the command does the work itself.
  @Test func aRunThatIsKilledLeavesTheWorkToTheCommand() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        try await RunningGateway.with(configuration: file) { gateway in
          gateway.process.send(signal: SIGSTOP)
          let sync = try ChildProcess(executable: Binaries.doorbell, arguments: ["sync", "--config", file])
          _ = try await sync.line(of: .errors, within: .seconds(150)) { $0.contains("sync.asked") }
          gateway.process.send(signal: SIGKILL)
          let ending = await sync.ending()
          #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
          #expect(try JSONValue(parsing: ending.output.joined())["by"] == "sync")
        }
      }
    }
  }

  /// Two at once: the second waits for the first and then does its own work.
  @Test func aSyncBesideASyncWaits() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        // The first one finds a server that is slow to answer, and holds the database meanwhile.
        stack.process.send(signal: SIGSTOP)
        let first = try ChildProcess(executable: Binaries.doorbell, arguments: ["sync", "--config", file])
        try await eventually("the first") { access(scratch.path + "/a.db-kizuna.run", F_OK) == 0 }
        let second = try ChildProcess(executable: Binaries.doorbell, arguments: ["sync", "--config", file])
        _ = try await second.line(of: .errors, within: .seconds(150)) { $0.contains("sync.waits") }
        stack.process.send(signal: SIGCONT)
        for process in [first, second] {
          let ending = await process.ending()
          #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
          #expect(try JSONValue(parsing: ending.output.joined())["by"] == "sync")
        }
      }
    }
  }

  /// Each has its turn, however many there are.
  @Test func manyAtOnceAllDeliver() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        let syncs = try (0..<8).map { _ in
          try ChildProcess(executable: Binaries.doorbell, arguments: ["sync", "--config", file])
        }
        for sync in syncs {
          let ending = await sync.ending()
          #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
        }
      }
    }
  }

  /// A signal would end an app that does not expect it. This process is one.
  @Test func anAppThatHoldsTheDatabaseIsNotSignalled() async throws {
    try await SyncedHost.with { stack, _, database, file in
      let client = KizunaSyncClient()
      try await client.create(
        KizunaSyncClientConfig(
          tables: ["todos": .init(bucket: .byOwner("owner_id"))], databasePath: database,
          remote: .init(url: stack.url, publishableKey: stack.publishableKey)))
      try await fails(file, .locked, saying: "process \(getpid()) ", "stop it first")
      await client.dispose()
    }
  }

  @Test func anotherUsersDatabaseIsNotTouched() async throws {
    try await SyncedHost.with { stack, scratch, database, file in
      let bob = stack.configuration(
        database: database, session: #"{"email": "bob@example.com", "password": "bob"}"#)
      try scratch.write("a.json", bob)
      let ending = try await Binaries.doorbell("sync", "--config", file)
      #expect(ending.code == ExitCode.configuration.rawValue)
      #expect(ending.errors.contains { $0.contains("belongs to another user") })
      // That was a mistake, and its owner goes on.
      try scratch.write("a.json", stack.configuration(database: database))
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
      try scratch.write("a.json", bob)

      // Emptied, it is the new user's, and nothing unsent is lost without being asked for.
      try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('never sent')")
      let refused = try await Binaries.doorbell("reset", "--config", file)
      #expect(refused.code == ExitCode.workLeft.rawValue)
      #expect(refused.errors.contains { $0.contains("1 write never sent") && $0.contains("--discard-writes") })
      #expect(try PlainSQL.run(database, "SELECT count(*) FROM todos") == ["1"])
      let emptied = try await Binaries.doorbell("reset", "--config", file, "--discard-writes")
      #expect(emptied.code == ExitCode.ok.rawValue)
      #expect(try PlainSQL.run(database, "SELECT count(*) FROM todos") == ["0"])
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
    }
  }

  /// A client that got another user's token blocks its database, as the Kizuna API says; every command tells.
  @Test func aBlockedReplicaSaysSo() async throws {
    try await SyncedHost.with { stack, _, database, file in
      let client = KizunaSyncClient()
      try await client.create(
        KizunaSyncClientConfig(
          tables: ["todos": .init(bucket: .byOwner("owner_id"))], databasePath: database,
          remote: .init(url: stack.url, publishableKey: stack.publishableKey)))
      // {"sub":"other"}
      try await client.setAccessToken("e30.eyJzdWIiOiJvdGhlciJ9.x")
      await client.dispose()

      let ending = try await Binaries.doorbell("sync", "--config", file)
      #expect(ending.code == ExitCode.workLeft.rawValue)
      #expect(try JSONValue(parsing: ending.output.joined())["blocked"] == "identity_changed")
      #expect(ending.errors.contains { $0.contains("kizuna-doorbell reset") })
      let gateway = try ChildProcess(executable: Binaries.doorbell, arguments: ["run", "--config", file])
      let line = try await gateway.line(of: .errors, within: .seconds(150)) {
        $0.contains("gateway.synced") || $0.contains("gateway.blocked")
      }
      #expect(line.contains("gateway.blocked") && line.contains("kizuna-doorbell reset"))
      await gateway.stop()
    }
  }
}
