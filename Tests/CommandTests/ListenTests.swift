import Glibc
import HostKit
import LocalStack
import SyncServer
import Testing

@Suite struct ListenTests {
  /// Runs `listen`, changes a row on the server, and expects the ring.
  private func hears(_ stack: Stack, _ scratch: Scratch, _ arguments: [String]) async throws {
    let listen = try ChildProcess(executable: Binaries.doorbell, arguments: ["listen"] + arguments)
    do {
      let ready = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
      #expect(try JSONValue(parsing: ready)["topics"]?["kizunasync:todos"] == "joined")
      let file = try scratch.write("writer.json", stack.configuration(database: scratch.path + "/w.db"))
      _ = try await Binaries.doorbell("sync", "--config", file)
      try PlainSQL.run(scratch.path + "/w.db", "INSERT INTO todos(title) VALUES ('a secret title')")
      _ = try await Binaries.doorbell("sync", "--config", file)
      let line = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"cause\":\"broadcast\"") }
      let ring = try JSONValue(parsing: line)
      #expect(ring["event"] == "ring")
      #expect(ring["name"] == "changed")
      #expect(ring["topics"] == ["kizunasync:todos"])
      listen.send(signal: SIGTERM)
      let ending = await listen.ending()
      #expect(ending.code == ExitCode.ok.rawValue)
      // Every line is one JSON object, and a join rings too.
      let events = try ending.output.map { try JSONValue(parsing: $0) }
      #expect(events.contains { $0["event"] == "ring" && $0["cause"] == "join" })
    } catch {
      await listen.stop()
      throw error
    }
  }

  @Test(arguments: ["1.0.0", "2.0.0"])
  func hearsRingsInBothVersions(version: String) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: "unused.db"))
        try await hears(stack, scratch, ["--config", file, "--vsn", version])
      }
    }
  }

  @Test(arguments: ["1.0.0", "2.0.0"])
  func needsNoConfiguration(version: String) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let token = try await stack.signIn()
        let socket = stack.url.replacing("http://", with: "ws://") + "/realtime/v1/websocket"
        try await hears(
          stack, scratch,
          [
            "--realtime-url", socket, "--vsn", version,
            "--publishable-key-file", try scratch.write("key", stack.publishableKey + "\n"),
            "--access-token-file", try scratch.write("token", token + "\n"),
            "--table", "todos",
          ])
      }
    }
  }

  /// The token file is followed: after an expiry, the next token resumes at once.
  @Test func aNewTokenInTheFileResumes() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        // Long enough to be joined with on a busy machine.
        let end = SystemClock.shared.wallMilliseconds / 1000 + 8
        let path = try scratch.write(
          "token", Token.make(subject: stack.userID, expiresAt: end, secret: stack.jwtSecret))
        let file = try scratch.write(
          "a.json", stack.configuration(database: "unused.db", session: #"{"accessTokenFile": "\#(path)"}"#))
        let listen = try ChildProcess(executable: Binaries.doorbell, arguments: ["listen", "--config", file])
        do {
          _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
          // It is over, and nobody knows a better one.
          _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("awaiting_credentials") }
          _ = try scratch.write("token.new", try await stack.signIn())
          #expect(rename(scratch.path + "/token.new", path) == 0)
          _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
          await listen.stop()
        } catch {
          await listen.stop()
          throw error
        }
      }
    }
  }

  /// Broadcasts of the database are private; a public channel of the same name is another room.
  @Test func publicChannelsHearNothing() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/w.db"))
        let listen = try ChildProcess(
          executable: Binaries.doorbell, arguments: ["listen", "--config", file, "--public"])
        _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
        let other = try ChildProcess(executable: Binaries.doorbell, arguments: ["listen", "--config", file])
        _ = try await other.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
        _ = try await Binaries.doorbell("sync", "--config", file)
        try PlainSQL.run(scratch.path + "/w.db", "INSERT INTO todos(title) VALUES ('x')")
        _ = try await Binaries.doorbell("sync", "--config", file)
        _ = try await other.line(of: .output, within: .seconds(150)) { $0.contains("\"cause\":\"broadcast\"") }
        await other.stop()
        let ending = await listen.stop()
        #expect(!ending.output.contains { $0.contains("\"cause\":\"broadcast\"") })
      }
    }
  }

  private static let refusals: [([String], ExitCode)] = [
    (["--publishable-key", "wrong", "--access-token", "x", "--table", "todos"], .authentication),
    (["--table", "todos"], .usage), (["--publishable-key", "k"], .usage),
  ]

  @Test(arguments: refusals)
  func saysWhatIsWrong(arguments: [String], code: ExitCode) async throws {
    try await Stack.with { stack in
      let ending = await
        (try ChildProcess(executable: Binaries.doorbell, arguments: ["listen", "--url", stack.url] + arguments))
        .ending()
      #expect(ending.code == code.rawValue, "\(ending.errors)")
      #expect(ending.errors.contains { $0.hasPrefix("kizuna-doorbell: ") })
    }
  }

  /// What no other user or token would change is a matter of configuration.
  @Test func aProjectWithPrivateChannelsOnlyRefusesPublicOnes() async throws {
    var options = LocalStack.Options()
    options.realtime.privateOnly = true
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id")], users: [.init(email: "ann@example.com", password: "pw")]
      ),
      options: options)
    do {
      let ending = await
        (try ChildProcess(
          executable: Binaries.doorbell,
          arguments: [
            "listen", "--url", stack.url, "--publishable-key", stack.publishableKey, "--table", "todos", "--public",
            "--log-level", "error",
          ])).ending()
      #expect(ending.code == ExitCode.configuration.rawValue, "\(ending.errors)")
      #expect(ending.errors.first?.contains("leave --public away") == true, "\(ending.errors)")
      try await stack.stop()
    } catch {
      try await stack.stop()
      throw error
    }
  }

  @Test func authoritiesThatAreNoneAreToldAtOnce() async throws {
    try await Scratch.with { scratch in
      let file = try scratch.write("ca.pem", "not a certificate\n")
      let ending = await
        (try ChildProcess(
          executable: Binaries.doorbell,
          arguments: [
            "listen", "--url", "https://example.invalid", "--publishable-key", "k", "--table", "todos",
            "--authority-file", file,
          ])).ending()
      #expect(ending.code == ExitCode.usage.rawValue, "\(ending.errors)")
      #expect(ending.errors.first?.contains("holds no certificate in PEM form") == true, "\(ending.errors)")
    }
  }

  /// Each mistake with the credentials is named as what it is.
  @Test func saysWhichOfTheCredentialsIsWrong() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let expired = Token.make(subject: stack.userID, expiresAt: 1_600_000_000)
        let unsigned = Token.make(subject: stack.userID, expiresAt: 4_000_000_000)
        let good = try await stack.signIn()
        func fails(_ arguments: [String], _ words: String...) async throws {
          let ending = await
            (try ChildProcess(
              executable: Binaries.doorbell, arguments: ["listen", "--log-level", "error"] + arguments)).ending()
          #expect(ending.code == ExitCode.authentication.rawValue, "\(ending.errors)")
          #expect(ending.errors.count == 1, "\(ending.errors)")
          for word in words { #expect(ending.errors.first?.contains(word) == true, "\(ending.errors)") }
        }
        func configured(key: String? = nil, _ session: String) throws -> [String] {
          ["--config", try scratch.write("a.json", stack.configuration(database: "a.db", key: key, session: session))]
        }
        let password = #"{"email": "\#(Stack.email)", "password": "\#(Stack.password)"}"#
        try await fails(configured(#"{"email": "\#(Stack.email)", "password": "no"}"#), "password")
        try await fails(configured(key: "not-the-key", password), "publishable key")
        try await fails(configured(#"{"accessToken": "\#(expired)"}"#), "expired")
        try await fails(configured(#"{"accessToken": "\#(unsigned)"}"#), "access token")
        let target = ["--url", stack.url, "--table", "todos"]
        try await fails(target + ["--publishable-key", "not-the-key", "--access-token", good], "publishable key")
        let key = ["--publishable-key", stack.publishableKey]
        try await fails(target + key + ["--access-token", expired], "expired")
        try await fails(target + key + ["--access-token", unsigned], "access token", "signature")
        try await fails(target + key, "not let this user join")
      }
    }
  }

  @Test func aWrongPathNamesTheOption() async throws {
    try await Stack.with { stack in
      let socket = stack.url.replacing("http://", with: "ws://") + "/nowhere"
      let listen = try ChildProcess(
        executable: Binaries.doorbell,
        arguments: ["listen", "--realtime-url", socket, "--publishable-key", stack.publishableKey, "--table", "todos"])
      let ending = await listen.ending()
      #expect(ending.code == ExitCode.configuration.rawValue)
      #expect(ending.errors.last?.contains("check the path of --realtime-url") == true, "\(ending.errors)")
    }
  }

  @Test func aTableThatIsNotConfigured() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: "a.db"))
        let ending = try await Binaries.doorbell("listen", "--config", file, "--table", "todo")
        #expect(ending.code == ExitCode.usage.rawValue)
        #expect(
          ending.errors == ["kizuna-doorbell: --table todo is not in the configuration; did you mean \"todos\"?"])
      }
    }
  }

  @Test func aServerThatIsNotThere() async throws {
    let ending = try await Binaries.doorbell(
      "listen", "--url", "http://127.0.0.1:9", "--publishable-key", "k", "--table", "todos", "--log-level", "error")
    #expect(ending.code == ExitCode.unreachable.rawValue)
    #expect(ending.errors.count == 1)
  }
}
