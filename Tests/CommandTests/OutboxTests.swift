import HostKit
import Testing

@Suite struct OutboxTests {
  private func json(_ arguments: String...) async throws -> (code: Int32, value: JSONValue, errors: [String]) {
    let ending = await (try ChildProcess(executable: Binaries.doorbell, arguments: arguments + ["--json"])).ending()
    return (ending.code, try JSONValue(parsing: ending.output.joined()), ending.errors)
  }

  @Test func whatNobodyTookUpYetIsListedToo() async throws {
    try await SyncedHost.with { _, _, database, file in
      try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x'), ('y')")
      let list = try await json("outbox", "list", "--config", file)
      #expect(list.value["captured"] == [["table": "todos", "changes": 2]])
      let text = try await Binaries.doorbell("outbox", "list", "--config", file)
      #expect(text.output == ["waits    2 changes of todos by plain SQL, which the next run or sync takes up"])
      let none = try await Binaries.doorbell("outbox", "retry", "--config", file, "--all")
      #expect(none.output == ["there are no refused writes"])
    }
  }

  /// A row of the server that an index of this database refuses.
  @Test func whatIsKeptAsideIsListed() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let files = try ["a", "b"].map {
          try scratch.write("\($0).json", stack.configuration(database: "\(scratch.path)/\($0).db"))
        }
        for file in files {
          #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        }
        try PlainSQL.run(
          scratch.path + "/a.db",
          "INSERT INTO todos(id, title) VALUES ('k1', 'the-surprise-party'), ('k2', 'the-surprise-party')")
        try PlainSQL.run(scratch.path + "/b.db", "CREATE UNIQUE INDEX one ON todos(title)")
        for file in files { _ = try await Binaries.doorbell("sync", "--config", file) }
        let list = try await json("outbox", "list", "--config", files[1])
        let parked = list.value["parked"]?.arrayValue ?? []
        #expect(parked.count == 1 && parked.first?["table"] == "todos")
        #expect(parked.first?["reason"]?.stringValue?.contains("todos.title") == true, "\(list.value)")
        let text = try await Binaries.doorbell("outbox", "list", "--config", files[1])
        #expect(text.output.contains { $0.hasPrefix("parked   todos k") && $0.contains("todos.title") })
        let status = try await Binaries.doorbell("status", "--config", files[1])
        #expect(status.output.contains { $0.contains("1 row parked; see outbox list") })
        let doctor = try await Binaries.doorbell("doctor", "--config", files[1])
        #expect(doctor.output.joined(separator: "\n").contains("outbox list"))
        for output in [list.value.description, text.output.joined(), status.output.joined(), doctor.output.joined()] {
          #expect(!output.contains("surprise"))
        }
      }
    }
  }

  /// What the newcomer to a server meets: a table that is declared here and not there.
  @Test func aTableTheServerDoesNotSync() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let text = stack.configuration(database: database).replacing(
          #""tables": {"#, with: #""tables": {"notes": {"columns": {"title": "text"}},"#)
        let file = try scratch.write("a.json", text)
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        try PlainSQL.run(
          database, "INSERT INTO notes(id, title) VALUES ('n', 'x'); INSERT INTO todos(id, title) VALUES ('t', 'x')")
        let cause = "the server does not synchronise the table notes; compare `tables` in the configuration"
        for attempt in 1...5 {
          let sync = try await Binaries.doorbell("sync", "--config", file)
          #expect(sync.code == (attempt < 5 ? ExitCode.configuration : .workLeft).rawValue, "\(sync.errors)")
          #expect(sync.errors.joined().contains(cause), "\(sync.errors)")
          guard attempt == 1 else { continue }
          let status = try await Binaries.doorbell("status", "--config", file)
          #expect(status.output.joined().contains(cause) && !status.output.joined().contains("in status"))
        }
        let list = try await Binaries.doorbell("outbox", "list", "--config", file)
        #expect(list.output.contains { $0.contains("DEAD_LETTER, PERMANENT_TRANSPORT: ") && $0.contains(cause) })
      }
    }
  }

  /// A group that no server takes is refused in one run, says why, and is not spelled write by write.
  @Test func aGroupOverTheServersLimitSaysSo() async throws {
    try await SyncedHost.with { _, _, database, file in
      try PlainSQL.run(
        database,
        "BEGIN IMMEDIATE; INSERT INTO _kizunasync_group VALUES ('big'); "
          + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) "
          + "INSERT INTO todos(title) SELECT 'x' FROM n; DELETE FROM _kizunasync_group; COMMIT;")
      let sync = try await Binaries.doorbell("sync", "--config", file)
      #expect(sync.code == ExitCode.workLeft.rawValue)
      #expect(
        sync.errors.contains { $0.contains("reason=TOO_MANY_WRITES") && $0.contains("600 writes") }, "\(sync.errors)")
      let list = try await Binaries.doorbell("outbox", "list", "--config", file)
      #expect(
        list.output.contains { $0.contains("TOO_MANY_WRITES: ") && $0.contains("600 writes") && $0.contains("500") })
      let retry = try await Binaries.doorbell("outbox", "retry", "--config", file, "--all")
      #expect(retry.output.count == 1)
      #expect(retry.output.first?.contains(" as 600 writes: ") == true)
      #expect(retry.output.first?.hasSuffix(" and 597 more") == true)
    }
  }

  /// The whole way of a write that the server refuses, beside a run: it is listed, queued again, refused again, given up.
  @Test func aRefusedWriteIsListedRetriedAndDiscarded() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write(
          "a.json", stack.configuration(database: database, more: "\"pollInterval\": 3600,"))
        func refused() throws -> [String] {
          try PlainSQL.run(database, "SELECT mutation_id FROM _kizunasync_rejections WHERE dismissed = 0")
        }
        try await RunningGateway.with(configuration: file) { _ in
          try PlainSQL.run(database, "INSERT INTO todos(id, title, owner_id) VALUES ('k', 'secret', 'somebody else')")
          try await eventually("the refusal") { try !refused().isEmpty }
          let id = try refused()[0]

          let list = try await json("outbox", "list", "--config", file)
          #expect(list.code == ExitCode.ok.rawValue)
          #expect(list.value["queued"] == [])
          let entry = list.value["refused"]?[0]
          #expect(entry?["mutation_id"] == .string(id))
          #expect(entry?["kind"] == "REJECTED" && entry?["reason"] == "RLS_DENIED")
          #expect(entry?["table"] == "todos" && entry?["pk"] == "k")
          #expect(entry?["columns"] == ["owner_id", "title"])
          #expect(entry?["writes"] == nil)
          let values = try await json("outbox", "list", "--config", file, "--values")
          #expect(values.value["refused"]?[0]?["writes"]?[0]?["columns"]?["title"] == "secret")
          let text = try await Binaries.doorbell("outbox", "list", "--config", file)
          #expect(text.output.contains { $0.hasPrefix("refused  \(id)  todos k: REJECTED, RLS_DENIED, ") })
          #expect(!text.output.joined().contains("secret"))

          // The run is woken: without that nothing would be sent for an hour.
          let retry = try await json("outbox", "retry", "--config", file, "--id", id)
          #expect(retry.code == ExitCode.ok.rawValue)
          let queued = try #require(retry.value["retried"]?[0]?["queued_as"]?[0]?.stringValue)
          #expect(queued != id)
          try await eventually("the second refusal") { try refused() == [queued] }

          let again = try await Binaries.doorbell("outbox", "retry", "--config", file, "--id", id)
          #expect(again.code == ExitCode.failure.rawValue)
          #expect(again.errors == ["kizuna-doorbell: no refused write has the id \(id); outbox list shows them"])

          let discard = try await json("outbox", "discard", "--config", file, "--all")
          #expect(discard.code == ExitCode.ok.rawValue && discard.value["discarded"] == [.string(queued)])
        }
        let empty = try await Binaries.doorbell("outbox", "list", "--config", file)
        #expect(empty.output == ["nothing waits, and nothing was refused"])
        let dismissed = try await json("outbox", "list", "--config", file, "--dismissed")
        #expect(dismissed.value["refused"]?[0]?["dismissed"] == true)
      }
    }
  }

  /// Without a run: what waits is listed with its age, and the next sync sends what was queued again.
  @Test func whatWaitsIsListed() async throws {
    try await SyncedHost.with { stack, _, database, file in
      try PlainSQL.run(database, "INSERT INTO todos(id, title) VALUES ('k', 'x')")
      await stack.process.stop()
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.unreachable.rawValue)
      let list = try await json("outbox", "list", "--config", file)
      let write = list.value["queued"]?[0]
      #expect(write?["table"] == "todos" && write?["pk"] == "k" && write?["op"] == "insert")
      #expect(write?["sent"] == true && write?["age_s"]?.intValue != nil)
      #expect(write?["last_error"]?.stringValue?.contains("connection refused") == true)
      let retry = try await json("outbox", "retry", "--config", file, "--all")
      #expect(retry.code == ExitCode.ok.rawValue && retry.value["retried"] == [])
    }
  }

  private static let mistakes: [([String], String)] = [
    (["outbox"], "kizuna-doorbell outbox is one of outbox list, outbox retry, outbox discard"),
    (["outbox", "--json"], "kizuna-doorbell outbox is one of outbox list, outbox retry, outbox discard"),
    (["outbox", "lits", "--config", "x"], "unknown command \"outbox lits\"; did you mean \"outbox list\"?"),
    (["outbox", "retry", "--config", "x", "--id", "a", "--id", "a"], "--id is given twice with the same value"),
    (["outbox", "list", "--config", "x", "--id", "a"], "unknown option --id; --help lists the options"),
  ]

  @Test(arguments: mistakes)
  func namesTheMistake(arguments: [String], sentence: String) async throws {
    let ending = await (try ChildProcess(executable: Binaries.doorbell, arguments: arguments)).ending()
    #expect(ending.code == ExitCode.usage.rawValue)
    #expect(ending.errors == ["kizuna-doorbell: " + sentence])
  }

  @Test func needsToKnowWhichWrites() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        for verb in ["retry", "discard"] {
          let none = try await Binaries.doorbell("outbox", verb, "--config", file)
          #expect(none.code == ExitCode.usage.rawValue)
          let both = try await Binaries.doorbell("outbox", verb, "--config", file, "--id", "a", "--all")
          #expect(both.code == ExitCode.usage.rawValue)
          let absent = try await Binaries.doorbell("outbox", verb, "--config", file, "--all")
          #expect(absent.code == ExitCode.database.rawValue)
          #expect(absent.errors.first?.contains("there is no database") == true)
        }
      }
    }
  }

  @Test func explainsItself() async throws {
    for arguments in [["outbox", "--help"], ["outbox", "list", "--help"], ["outbox", "retry", "-h"]] {
      let ending = await (try ChildProcess(executable: Binaries.doorbell, arguments: arguments)).ending()
      #expect(ending.code == ExitCode.ok.rawValue)
      #expect(ending.output.contains { $0.hasPrefix("usage: kizuna-doorbell") })
    }
  }
}
