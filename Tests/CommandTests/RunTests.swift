import Foundation
import Glibc
import HostKit
import Testing

@Suite struct RunTests {
  private func todos(_ database: String, _ condition: String) throws -> String {
    try PlainSQL.run(database, "SELECT count(*) FROM todos WHERE \(condition)").first ?? ""
  }

  @Test func whatOneHostWritesAppearsOnTheOther() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let a = scratch.path + "/a.db"
        let b = scratch.path + "/b.db"
        // Nothing but a ring brings a row over in time.
        let rarely = "\"pollInterval\": 86400,"
        let fileA = try scratch.write("a.json", stack.configuration(database: a, more: rarely))
        let fileB = try scratch.write("b.json", stack.configuration(database: b, more: rarely))
        try await RunningGateway.with(configuration: fileA) { _ in
          try await RunningGateway.with(configuration: fileB) { _ in
            try PlainSQL.run(a, "INSERT INTO todos(title, done) VALUES ('x', 0), ('y', 0)")
            try await eventually("both rows") { try todos(b, "owner_id = '\(stack.userID)'") == "2" }
            try PlainSQL.run(b, "UPDATE todos SET done = 1 WHERE title = 'x'")
            try await eventually("the update") { try todos(a, "title = 'x' AND done = 1") == "1" }
            try PlainSQL.run(a, "DELETE FROM todos WHERE title = 'y'")
            try await eventually("the delete") { try todos(b, "title = 'y'") == "0" }
          }
        }
      }
    }
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func endsWhenItIsTold(signal: Int32) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        try await RunningGateway.with(configuration: file) { gateway in
          gateway.process.send(signal: signal)
          #expect(await gateway.process.ending().code == ExitCode.ok.rawValue)
        }
      }
    }
  }

  /// The server takes the push and does not answer any more: the process ends all the same, and the next one delivers.
  @Test func endsWhileAPushHangsAndDeliversItLater() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await RunningGateway.with(configuration: file) { gateway in
          stack.process.send(signal: SIGSTOP)
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('late')")
          try await eventually("the write being sent") {
            try PlainSQL.run(database, "SELECT state FROM _kizunasync_outbox") == ["1"]
          }
          let before = SystemClock.monotonic
          gateway.process.send(signal: SIGTERM)
          #expect(await gateway.process.ending().code == ExitCode.ok.rawValue)
          #expect(SystemClock.monotonic - before < .seconds(10))
        }
        stack.process.send(signal: SIGCONT)
        let sync = try await Binaries.doorbell("sync", "--config", file)
        #expect(sync.code == ExitCode.ok.rawValue, "\(sync.errors)")
        #expect(try todos(database, "title = 'late'") == "1")
      }
    }
  }

  /// The runtime's own pool would wake the process once a second for ever.
  @Test func everyThreadIsOneThatSleepsUntilThereIsWork() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        try await RunningGateway.with(configuration: file) { gateway in
          let tasks = "/proc/\(gateway.process.pid)/task"
          let names = try FileManager.default.contentsOfDirectory(atPath: tasks).map {
            try String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
          }
          #expect(names.contains("swift-pool"))
          #expect(names.filter { $0 != "swift-pool" && !$0.hasPrefix("kizuna-") } == [])
        }
      }
    }
  }

  @Test func endsWellWhenItIsToldBeforeTheServerAnswers() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        stack.process.send(signal: SIGSTOP)
        // It is signing in once the database is there. A shell sees that in time, however busy these tests are.
        let script = """
          "$0" run --config "$1" & while ! [ -e "$2" ]; do sleep 0.05; done; kill -TERM $!; wait $!
          """
        let shell = try ChildProcess(
          executable: "/bin/sh", arguments: ["-c", script, Binaries.doorbell, file, scratch.path + "/a.db"])
        let ending = await shell.ending()
        #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
        stack.process.send(signal: SIGCONT)
      }
    }
  }

  @Test func aRefusedWriteIsInTheLogWithItsReason() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await RunningGateway.with(configuration: file) { gateway in
          try PlainSQL.run(database, "INSERT INTO todos(title, owner_id) VALUES ('theirs', 'somebody else')")
          let line = try await gateway.process.line(of: .errors, within: .seconds(150)) {
            $0.contains("sync.write_refused")
          }
          #expect(try JSONValue(parsing: line)["reason"] == "RLS_DENIED")
          #expect(!line.contains("theirs"))
        }
        try PlainSQL.run(database, "INSERT INTO todos(title, owner_id) VALUES ('theirs', 'somebody else')")
        let sync = try await Binaries.doorbell("sync", "--config", file)
        #expect(sync.code == ExitCode.workLeft.rawValue)
        #expect(sync.errors.contains { $0.contains("sync.write_refused table=todos") && $0.contains("RLS_DENIED") })
      }
    }
  }

  @Test func aHangupWakesIt() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write(
          "a.json", stack.configuration(database: scratch.path + "/a.db", more: "\"pollInterval\": 3600,"))
        try await RunningGateway.with(configuration: file) { gateway in
          // A hint that comes while the join's own rings wait for their run shares it, under their name.
          var reasons: [JSONValue] = []
          while reasons.last != "foreground", reasons.count < 5 {
            gateway.process.send(signal: SIGHUP)
            _ = try await gateway.process.line(of: .errors, within: .seconds(150)) { $0.contains("gateway.woken") }
            let line = try await gateway.process.line(of: .errors, within: .seconds(150)) {
              $0.contains("gateway.synced")
            }
            reasons.append(try JSONValue(parsing: line)["reason"] ?? .null)
          }
          #expect(reasons.last == "foreground")
        }
      }
    }
  }

  @Test func warnsOfSecretsThatEveryoneCanRead() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try scratch.write("password", Stack.password, mode: 0o644)
        let session = #"{"email": "\#(Stack.email)", "passwordFile": "password"}"#
        let file = try scratch.write(
          "a.json", stack.configuration(database: scratch.path + "/a.db", session: session))
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.ok.rawValue)
        #expect(ending.errors.contains { $0.contains("warning") && $0.contains("chmod 600") })
      }
    }
  }
}
