import Foundation
import Glibc
import HostKit
import Testing

/// What people get wrong: each mistake is one sentence and its exit code, and loses nothing.
@Suite struct BadInputTests {
  /// Runs `sync`, and expects one sentence.
  private func sync(
    _ configuration: String, in scratch: Scratch, exits code: ExitCode, saying words: String...
  ) async throws {
    let file = try scratch.write("gateway.json", configuration)
    let ending = try await Binaries.doorbell("sync", "--config", file, "--log-level", "error")
    #expect(ending.code == code.rawValue, "\(ending.errors)")
    #expect(ending.output.isEmpty)
    #expect(ending.errors.count == 1)
    for word in words { #expect(ending.errors.first?.contains(word) == true, "\(ending.errors)") }
    #expect(ending.errors.first?.hasPrefix("kizuna-doorbell: ") == true)
  }

  /// Runs `sync`, and expects that it delivers.
  private func sync(_ configuration: String, in scratch: Scratch) async throws {
    let file = try scratch.write("gateway.json", configuration)
    let ending = try await Binaries.doorbell("sync", "--config", file, "--log-level", "error")
    #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
  }

  @Test func wrongKey() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try await sync(
          stack.configuration(database: scratch.path + "/a.db", key: "not-the-key"), in: scratch,
          exits: .authentication, saying: "key")
      }
    }
  }

  @Test func wrongPassword() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let session = #"{"email": "\#(Stack.email)", "password": "wr0ng-p4ss"}"#
        let configuration = stack.configuration(database: scratch.path + "/a.db", session: session)
        try await sync(configuration, in: scratch, exits: .authentication, saying: "password")
        let ending = try await Binaries.doorbell("run", "--config", scratch.path + "/gateway.json")
        #expect(ending.code == ExitCode.authentication.rawValue)
        #expect(!ending.errors.joined().contains("wr0ng-p4ss"))
        // Once as an event and once at the end, and not a third time.
        #expect(ending.errors.filter { $0.contains("refused the e-mail address") }.count == 2, "\(ending.errors)")
      }
    }
  }

  @Test func expiredToken() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let token = Token.make(subject: stack.userID, expiresAt: 1_600_000_000)
        let configuration = stack.configuration(
          database: scratch.path + "/a.db", session: #"{"accessToken": "\#(token)"}"#)
        try await sync(configuration, in: scratch, exits: .authentication, saying: "expired")
        for verb in ["run", "listen"] {
          let ending = try await Binaries.doorbell(verb, "--config", scratch.path + "/gateway.json")
          #expect(ending.code == ExitCode.authentication.rawValue, "\(verb): \(ending.errors)")
        }
      }
    }
  }

  @Test func aTokenTheServerDidNotSign() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let token = Token.make(subject: stack.userID, expiresAt: 4_000_000_000)
        let configuration = stack.configuration(
          database: scratch.path + "/a.db", session: #"{"accessToken": "\#(token)"}"#)
        try await sync(configuration, in: scratch, exits: .authentication)
        let ending = try await Binaries.doorbell("run", "--config", scratch.path + "/gateway.json")
        #expect(ending.code == ExitCode.authentication.rawValue, "\(ending.errors)")
      }
    }
  }

  /// A file may be replaced while a gateway runs, but that is no reason to wait for ever for the first token that works.
  @Test func aTokenFileTheServerRefusesFromTheStart() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try scratch.write("token", Token.make(subject: stack.userID, expiresAt: 4_000_000_000))
        let configuration = stack.configuration(
          database: scratch.path + "/a.db", session: #"{"accessTokenFile": "token"}"#)
        try await sync(configuration, in: scratch, exits: .authentication, saying: "access token")
        let ending = try await Binaries.doorbell("run", "--config", scratch.path + "/gateway.json")
        #expect(ending.code == ExitCode.authentication.rawValue, "\(ending.errors)")
        #expect(ending.errors.last?.hasPrefix("kizuna-doorbell: ") == true)
        #expect(ending.errors.last?.contains("refused the access token") == true, "\(ending.errors)")
        let bench = try await Binaries.doorbell("bench", "--config", scratch.path + "/gateway.json", "--rings", "1")
        #expect(bench.code == ExitCode.authentication.rawValue, "\(bench.errors)")
      }
    }
  }

  /// The key goes with every call, whoever signs in.
  @Test func aWrongKeyBesideAGoodToken() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try scratch.write("token", try await stack.signIn())
        let session = #"{"accessTokenFile": "token"}"#
        let database = scratch.path + "/a.db"
        try await sync(
          stack.configuration(database: database, key: "not-the-key", session: session), in: scratch,
          exits: .authentication, saying: "publishable")
        let ending = try await Binaries.doorbell("run", "--config", scratch.path + "/gateway.json")
        #expect(ending.code == ExitCode.authentication.rawValue, "\(ending.errors)")
        #expect(ending.errors.last?.contains("publishable") == true, "\(ending.errors)")
        try await sync(stack.configuration(database: database, session: session), in: scratch)
      }
    }
  }

  @Test(arguments: ["http://127.0.0.1:9", "https://nobody.invalid"])
  func unreachableHost(url: String) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let host = url.split(separator: "/")[1]
        let configuration = stack.configuration(database: database, url: url)
        try await sync(configuration, in: scratch, exits: .unreachable, saying: String(host.prefix(9)))
        let ending = try await Binaries.doorbell("run", "--config", scratch.path + "/gateway.json")
        #expect(ending.code == ExitCode.unreachable.rawValue)
      }
    }
  }

  /// A gateway that was in step before waits for the server, and what is written meanwhile is not lost.
  @Test func aServerThatIsAwayStopsOnlyTheFirstStart() async throws {
    try await Scratch.with { scratch in
      let database = scratch.path + "/a.db"
      let file = scratch.path + "/gateway.json"
      try await Stack.with { stack in
        try scratch.write("gateway.json", stack.configuration(database: database))
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('first')")
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
      }
      let process = try ChildProcess(executable: Binaries.doorbell, arguments: ["run", "--config", file])
      _ = try await process.line(of: .errors, within: .seconds(150)) { $0.contains("gateway.started") }
      try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('second')")
      #expect(await process.stop().code == ExitCode.ok.rawValue)
      #expect(try PlainSQL.run(database, "SELECT count(*) FROM todos") == ["2"])
      let status = try await Binaries.doorbell("status", "--config", file, "--json")
      #expect(try JSONValue(parsing: status.output[0])["outbox_depth"] == 1)
    }
  }

  @Test func plainHTTPToAPublicHost() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try await sync(
          stack.configuration(database: "a.db", url: "http://example.com"), in: scratch, exits: .configuration,
          saying: "gateway.json:2:10: url:", "use https for example.com")
      }
    }
  }

  @Test func everyProblemOfAConfigurationAtOnce() async throws {
    try await Scratch.with { scratch in
      let file = try scratch.write("gateway.json", #"{"url": 7, "databse": "a.db", "tables": {}, "session": {}}"#)
      for verb in ["run", "sync", "status", "listen", "bench"] {
        let ending = try await Binaries.doorbell(verb, "--config", file)
        #expect(ending.code == ExitCode.configuration.rawValue)
        #expect(ending.errors.count == 6, "\(ending.errors)")
        #expect(ending.errors.allSatisfy { $0.hasPrefix("kizuna-doorbell: \(file):1:") })
        #expect(ending.errors.contains { $0.hasSuffix("databse: unknown key; did you mean \"database\"?") })
      }
    }
  }

  /// A pipe that nobody writes to would keep a reader waiting for ever.
  @Test func filesThatAreNone() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let pipe = scratch.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        for (path, words) in [
          (pipe, "it is a pipe"), ("/dev/zero", "it is a device"), (scratch.path, "it is a folder"),
        ] {
          for verb in ["run", "sync", "status", "listen", "bench"] {
            let ending = try await Binaries.doorbell(verb, "--config", path)
            #expect(ending.code == ExitCode.configuration.rawValue)
            #expect(ending.errors.count == 1 && ending.errors[0].contains(words), "\(verb): \(ending.errors)")
          }
          for session in [#"{"accessTokenFile": "\#(path)"}"#, #"{"email": "a@b.c", "passwordFile": "\#(path)"}"#] {
            try await sync(
              stack.configuration(database: "a.db", session: session), in: scratch, exits: .configuration,
              saying: "gateway.json:11:", words)
          }
        }
        let long = try scratch.write("long", String(repeating: "x", count: 70_000))
        try await sync(
          stack.configuration(database: "a.db", session: #"{"accessTokenFile": "\#(long)"}"#), in: scratch,
          exits: .configuration, saying: "longer than 65536 bytes")
      }
    }
  }

  @Test func aLineBreakInAKey() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try await sync(
          stack.configuration(database: "a.db", key: "key\\r\\nX-Other: 1"), in: scratch, exits: .configuration,
          saying: "gateway.json:3:21: publishableKey: must not hold a line break")
        try await sync(
          stack.configuration(database: "a.db", session: #"{"accessToken": "a\u0001b"}"#), in: scratch,
          exits: .configuration, saying: "gateway.json:11:30: session.accessToken: must not hold control characters")
      }
    }
  }

  @Test func aDatabaseThatIsNotSQLite() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let text = String(repeating: "my diary, not a database. ", count: 200)
        let database = try scratch.write("diary.txt", text)
        try await sync(
          stack.configuration(database: database), in: scratch, exits: .database, saying: "is not an SQLite database")
        #expect(try HostFile.readText(database) == text)
        let status = try await Binaries.doorbell("status", "--config", scratch.path + "/gateway.json")
        #expect(status.code == ExitCode.database.rawValue)
      }
    }
  }

  @Test func aFolderThatDoesNotExist() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try await sync(
          stack.configuration(database: scratch.path + "/none/a.db"), in: scratch, exits: .database,
          saying: "the directory \(scratch.path)/none of the database does not exist")
      }
    }
  }

  @Test func aDatabaseThatIsAFolder() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try await sync(
          stack.configuration(database: scratch.path), in: scratch, exits: .database,
          saying: "\(scratch.path) is a directory; name a file in it")
        let status = try await Binaries.doorbell("status", "--config", scratch.path + "/gateway.json")
        #expect(status.code == ExitCode.database.rawValue)
        #expect(status.errors.first?.contains("is a directory; name a file in it") == true)
      }
    }
  }

  @Test(arguments: ["sqlite_x", "pragma_table_info", "_kizunasync_outbox"])
  func aTableWithAReservedName(name: String) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let configuration = stack.configuration(database: "a.db")
          .replacingOccurrences(of: "\"todos\"", with: "\"\(name)\"")
        try await sync(configuration, in: scratch, exits: .configuration, saying: name)
      }
    }
  }

  @Test func aPathWithANUL() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try await sync(
          stack.configuration(database: #"a\u0000.db"#), in: scratch, exits: .configuration, saying: "database", "NUL")
      }
    }
  }

  @Test func aFolderWithoutWritePermission() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write(
          "gateway.json", stack.configuration(database: scratch.path + "/a.db"), mode: 0o644)
        chmod(scratch.path, 0o755)
        let process = try await Unprivileged.start(
          ["sync", "--config", file, "--log-level", "error"], mayNotWrite: scratch.path)
        let ending = await process.ending()
        chmod(scratch.path, 0o700)
        #expect(ending.code == ExitCode.database.rawValue, "\(ending.errors)")
        #expect(
          ending.errors.last?.contains("the directory \(scratch.path) of the database cannot be written") == true,
          "\(ending.errors)")
      }
    }
  }

  /// Nothing is left beside a file that a command cannot use.
  @Test func somethingElseWhereTheDatabaseShouldBe() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("gateway.json", stack.configuration(database: "notes.txt"))
        try scratch.write("notes.txt", String(repeating: "no database ", count: 500))
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.database.rawValue)
        #expect(ending.errors.last?.contains("not an SQLite database") == true, "\(ending.errors)")
        #expect(access(scratch.path + "/notes.txt-kizuna.lock", F_OK) != 0)
        #expect(try HostFile.readText(scratch.path + "/notes.txt").hasPrefix("no database"))
      }
    }
  }

  /// Below /proc nothing can be made, also by those who may write everywhere.
  @Test func aFolderThatTakesNoFiles() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("gateway.json", stack.configuration(database: "/proc/m.db"))
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.database.rawValue)
        #expect(ending.errors.last?.contains("/proc") == true && ending.errors.last?.contains("; ") == true)
        if getuid() == 0 {
          #expect(
            ending.errors.last?.hasSuffix("no file can be made in /proc; name another path for the database") == true)
        }
      }
    }
  }

  @Test func aPortInUse() async throws {
    try await Stack.with { stack in
      let port = String(stack.url.split(separator: ":").last ?? "")
      let second = try ChildProcess(executable: Binaries.localStack, arguments: ["--port", port, "--table", "todos"])
      let ending = await second.ending()
      #expect(ending.code == ExitCode.addressInUse.rawValue)
      #expect(ending.errors.count == 1)
      #expect(ending.errors.first?.contains(port) == true)
    }
  }

  @Test func aSecondRunOnTheSameDatabase() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("gateway.json", stack.configuration(database: scratch.path + "/a.db"))
        try await RunningGateway.with(configuration: file) { first in
          let second = try await Binaries.doorbell("run", "--config", file, "--log-level", "error")
          #expect(second.code == ExitCode.locked.rawValue)
          #expect(second.errors.count == 1)
          #expect(second.errors.first?.contains("process \(first.process.pid) ") == true, "\(second.errors)")
        }
      }
    }
  }
}
