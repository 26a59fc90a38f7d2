import Glibc
import HostKit
import LocalStack
import SyncServer
import Testing

@Suite struct DoctorTests {
  /// What `doctor --json` said.
  private struct Report {
    let ending: ChildProcess.Ending
    let checks: [JSONValue]

    init(_ file: String) async throws {
      ending = try await Binaries.doorbell("doctor", "--config", file, "--json")
      let report = try JSONValue(parsing: ending.output.joined())
      checks = report["checks"]?.arrayValue ?? []
      #expect(report["exit_code"]?.intValue == Int(ending.code))
      // Each tells something, and what to do where something is to be done.
      for check in checks {
        let isTrouble = check["status"] == "failed" || check["status"] == "warning"
        #expect(check["text"]?.stringValue?.isEmpty == false)
        #expect(!isTrouble || check["remedy"]?.stringValue?.isEmpty == false, "\(check)")
      }
    }

    func status(_ check: String) -> String? {
      checks.first { $0["check"]?.stringValue == check }?["status"]?.stringValue
    }

    func text(_ check: String) -> String {
      let found = checks.first { $0["check"]?.stringValue == check }
      return "\(found?["text"]?.stringValue ?? "") → \(found?["remedy"]?.stringValue ?? "")"
    }

    func names(_ status: String) -> Set<String> {
      Set(checks.filter { $0["status"]?.stringValue == status }.compactMap { $0["check"]?.stringValue })
    }
  }

  private static let all: Set<String> = [
    "configuration", "folder", "database", "integrity", "references", "format", "write-ahead log", "disk", "lock",
    "replica", "proxy", "name lookup", "server", "clock", "key", "sign-in", "token", "pull", "push", "realtime", "join",
    "ring",
  ]
  private static let needServer: Set<String> = ["sign-in", "token", "pull", "push", "realtime", "join", "ring"]

  private func withStack(_ body: (Stack, String, String) async throws -> Void) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await body(stack, file, database)
      }
    }
  }

  @Test func allIsWell() async throws {
    try await withStack { stack, file, database in
      let fresh = try await Report(file)
      #expect(fresh.ending.code == ExitCode.ok.rawValue, "\(fresh.ending.output)")
      #expect(access(database, F_OK) != 0, "doctor makes no database")

      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
      try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('the-surprise-party')")
      let report = try await Report(file)
      #expect(report.ending.code == ExitCode.ok.rawValue)
      #expect(report.names("ok") == Self.all, "\(report.ending.output)")
      #expect(Set(report.checks.compactMap { $0["check"]?.stringValue }) == Self.all)
      #expect(report.text("replica").contains("1 write waits"))
      // Nothing was sent, queued or taken away.
      #expect(try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_capture") == ["1"])

      let text = try await Binaries.doorbell("doctor", "--config", file, "--log-level", "debug")
      #expect(text.output.last == "22 ok, 0 warning, 0 failed, 0 skipped")
      let said = (text.output + text.errors + report.ending.output + report.ending.errors).joined(separator: "\n")
      let secrets = [
        stack.publishableKey, Stack.password, Stack.email, stack.jwtSecret, "eyJ", stack.userID, "the-surprise-party",
      ]
      for secret in secrets { #expect(!said.contains(secret)) }
    }
  }

  @Test func besideARun() async throws {
    try await withStack { _, file, database in
      try await RunningGateway.with(configuration: file) { gateway in
        let report = try await Report(file)
        #expect(report.ending.code == ExitCode.ok.rawValue, "\(report.ending.output)")
        #expect(report.names("ok") == Self.all)
        #expect(report.text("lock").contains("process \(gateway.process.pid) "))
        // It goes on as before.
        try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
        try await eventually("the push") {
          try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_pushed") == ["1"]
        }
      }
    }
  }

  @Test func aWrongKey() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db", key: "wrong"))
        let report = try await Report(file)
        #expect(report.ending.code == ExitCode.authentication.rawValue)
        #expect(report.names("failed") == ["key", "sign-in"], "\(report.ending.output)")
        #expect(report.text("key").contains("publishableKey"))
        #expect(report.status("server") == "ok" && report.status("pull") == "skipped")
      }
    }
  }

  @Test func aWrongPassword() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let session = #"{"email": "\#(Stack.email)", "password": "wrong"}"#
        let file = try scratch.write(
          "a.json", stack.configuration(database: scratch.path + "/a.db", session: session))
        let report = try await Report(file)
        #expect(report.ending.code == ExitCode.authentication.rawValue)
        #expect(report.names("failed") == ["sign-in"], "\(report.ending.output)")
        #expect(report.names("skipped").isSuperset(of: Self.needServer.subtracting(["sign-in"])))
      }
    }
  }

  /// What people put where the user's token belongs.
  @Test func theKeyInsteadOfAToken() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let session = #"{"accessToken": "\#(stack.publishableKey)"}"#
        let file = try scratch.write(
          "a.json", stack.configuration(database: scratch.path + "/a.db", session: session))
        let report = try await Report(file)
        #expect(report.ending.code == ExitCode.authentication.rawValue)
        #expect(report.text("token").contains("publishable key"))
        // It goes on, and the server says the same.
        #expect(report.status("push") == "failed" && report.status("join") == "failed", "\(report.ending.output)")
        #expect(report.status("ring") == "skipped")
      }
    }
  }

  @Test func aTokenThatIsOver() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let token = Token.make(subject: stack.userID, expiresAt: 1_000_000_000)
        let file = try scratch.write(
          "a.json",
          stack.configuration(database: scratch.path + "/a.db", session: #"{"accessToken": "\#(token)"}"#))
        let report = try await Report(file)
        #expect(report.ending.code == ExitCode.authentication.rawValue)
        #expect(report.text("token").contains("the access token ended"))
      }
    }
  }

  @Test func theServerIsDown() async throws {
    try await withStack { stack, file, _ in
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
      await stack.process.stop()
      let report = try await Report(file)
      #expect(report.ending.code == ExitCode.unreachable.rawValue)
      #expect(report.names("failed") == ["server"])
      #expect(report.names("skipped") == Self.needServer.union(["clock", "key"]))
      #expect(report.text("server").contains("refused"))
      #expect(report.status("integrity") == "ok")
    }
  }

  @Test func aDamagedDatabase() async throws {
    try await withStack { _, file, database in
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
      let filler = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3000)"
      try PlainSQL.run(
        database,
        "CREATE TABLE big AS \(filler) SELECT i, hex(randomblob(50)) x FROM n; PRAGMA wal_checkpoint(TRUNCATE)"
      )
      let descriptor = open(database, O_RDWR | O_CLOEXEC)
      let noise = [UInt8](repeating: 0xA5, count: 65_536)
      #expect(pwrite(descriptor, noise, noise.count, 200_000) == noise.count)
      close(descriptor)
      let report = try await Report(file)
      #expect(report.ending.code == ExitCode.database.rawValue)
      #expect(report.names("failed") == ["integrity"], "\(report.ending.output)")
      #expect(report.text("integrity").contains("keep a copy"))
      #expect(report.status("join") == "ok", "what does not need the file is checked all the same")
    }
  }

  @Test func aFileThatIsNoDatabase() async throws {
    try await withStack { _, file, database in
      let descriptor = open(database, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      let text = [UInt8](repeating: 0x61, count: 8192)
      #expect(write(descriptor, text, text.count) == text.count)
      close(descriptor)
      let report = try await Report(file)
      #expect(report.ending.code == ExitCode.database.rawValue)
      #expect(report.names("failed") == ["database"])
      #expect(report.status("integrity") == "skipped")
    }
  }

  @Test func aConfigurationThatCannotBeUsed() async throws {
    try await Scratch.with { scratch in
      let file = try scratch.write("a.json", #"{"url": "ftp://x", "tabels": {}}"#)
      let report = try await Report(file)
      #expect(report.ending.code == ExitCode.configuration.rawValue)
      #expect(report.names("failed") == ["configuration"])
      #expect(report.checks.filter { $0["status"] == "failed" }.count > 2, "each problem is told")
      #expect(report.names("skipped") == Self.all.subtracting(["configuration"]))
      // Programs get each check; people get one line for what is skipped for one reason.
      let text = try await Binaries.doorbell("doctor", "--config", file)
      #expect(text.output.filter { $0.hasPrefix("skipped") }.count == 1, "\(text.output)")
      #expect(text.output.contains { $0.hasPrefix("skipped  21 checks") && $0.hasSuffix(", ring") })
      #expect(text.output.last?.hasSuffix(", 21 skipped") == true)
    }
  }

  // MARK: Servers that are set up wrongly

  private func with(
    policy: RealtimePolicy? = nil, fault: LocalStack.RequestFault?, _ body: (Report) throws -> Void
  ) async throws {
    var options = LocalStack.Options()
    if let policy { options.policy = policy }
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)],
        users: [.init(email: Stack.email, password: Stack.password)]), options: options)
    stack.setRequestFault(fault)
    do {
      try await Scratch.with { scratch in
        let file = try scratch.write(
          "a.json",
          """
          {"url": "\(stack.url)", "publishableKey": "\(stack.publishableKey)", "database": "a.db",
           "tables": {"todos": {"bucket": {"owner": "owner_id"}}},
           "session": {"email": "\(Stack.email)", "password": "\(Stack.password)"}}
          """)
        try body(try await Report(file))
      }
      try await stack.stop()
    } catch {
      try await stack.stop()
      throw error
    }
  }

  private static let mistakes: [(Int, String, [String], ExitCode, String)] = [
    (406, "PGRST106", ["pull", "push"], .configuration, "exposed schemas"),
    (403, "42501", ["pull"], .configuration, "grants and policies"),
    (404, "PGRST202", ["push"], .configuration, "install the Kizuna Sync functions"),
  ]

  @Test(arguments: mistakes)
  func whatTheServerLacks(
    status: Int, code: String, functions: [String], exit: ExitCode, remedy: String
  ) async throws {
    let fault: LocalStack.RequestFault = { request in
      guard functions.contains(where: { request.path.hasSuffix("/rpc/\($0)") }) else { return nil }
      return .json(["code": .string(code), "message": "Key (title)=(the-surprise-party)"], status: status)
    }
    try await with(fault: fault) { report in
      #expect(report.ending.code == exit.rawValue)
      #expect(report.names("failed") == Set(functions), "\(report.ending.output)")
      for function in functions {
        #expect(report.text(function).contains(code) && report.text(function).contains(remedy))
      }
      #expect(!report.ending.output.joined().contains("surprise"))
      #expect(report.status("ring") == "ok")
    }
  }

  /// As on a hosted project: signed-in users may hear and not ring.
  @Test func usersThatMayNotRing() async throws {
    let hosted = RealtimePolicy(
      canRead: RealtimePolicy.signedIn().canRead, canWrite: { _, claims in claims["role"] == "service_role" })
    try await with(policy: hosted, fault: nil) { report in
      #expect(report.ending.code == ExitCode.ok.rawValue)
      #expect(report.status("join") == "ok" && report.status("ring") == "skipped")
      #expect(report.text("ring").contains("bench"))
    }
  }

  @Test func usersThatMayNotHear() async throws {
    let closed = RealtimePolicy(canRead: { _, _ in false }, canWrite: { _, _ in false })
    try await with(policy: closed, fault: nil) { report in
      #expect(report.ending.code == ExitCode.authentication.rawValue)
      #expect(report.names("failed") == ["join"], "\(report.ending.output)")
      #expect(report.text("join").contains("realtime.messages"))
      #expect(report.status("realtime") == "ok" && report.status("ring") == "skipped")
    }
  }

  @Test func aClockThatIsWrong() async throws {
    let fault: LocalStack.RequestFault = { request in
      guard request.path == "/auth/v1/health" else { return nil }
      return .json([:], status: 200, headers: [StackHeader("date", "Sun, 06 Nov 1994 08:49:37 GMT")])
    }
    try await with(fault: fault) { report in
      #expect(report.status("clock") == "warning", "\(report.ending.output)")
      #expect(report.text("clock").contains("ahead of") && report.text("clock").contains("timedatectl"))
    }
  }

  // MARK: Without a configuration

  @Test func theInstallationItself() async throws {
    let ending = try await Binaries.doorbell("doctor")
    #expect(ending.code == ExitCode.ok.rawValue, "\(ending.output) \(ending.errors)")
    #expect(ending.output.first?.contains("none is given") == true)
    #expect(ending.output.contains { $0.hasPrefix("ok       ring bench") })
    #expect(ending.output.last == "22 ok, 0 warning, 0 failed, 0 skipped")
  }

  /// Every command the README gives for it, as it stands there.
  @Test func theCommandsOfTheReadme() async throws {
    var folder = HostFile.directory(of: #filePath)
    for _ in 0..<2 { folder = HostFile.directory(of: folder) }
    let readme = try HostFile.readText(folder + "/README.md", maximumBytes: 1 << 20)
    let lines = readme.split(separator: "\n", omittingEmptySubsequences: false)
    let section = lines.drop { $0 != "### When something is wrong" }.dropFirst().prefix { !$0.hasPrefix("### ") }
    let commands = section.filter { $0.hasPrefix("kizuna-doorbell ") }
    #expect(commands.count == 3)
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        try scratch.write("gateway.json", stack.configuration(database: "todos.db"))
        for command in commands {
          let shell = try ChildProcess(
            executable: "/bin/sh",
            arguments: ["-c", "cd \"$0\" && PATH=\"$1:$PATH\" && \(command)", scratch.path, Binaries.folder])
          let ending = await shell.ending()
          #expect(ending.code == ExitCode.ok.rawValue, "\(command): \(ending.output) \(ending.errors)")
          #expect(!ending.output.isEmpty)
        }
      }
    }
  }
}
