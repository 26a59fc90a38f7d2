import HostKit
import Testing

@Suite struct SecretsTests {
  /// Everything a gateway, a listener and the server say in a whole run at the most talkative level holds no token, no
  /// key, no password and no text of a row.
  @Test func nothingSecretIsLogged() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        let title = "the-surprise-party"
        var said: [String] = []
        let listen = try ChildProcess(
          executable: Binaries.doorbell, arguments: ["listen", "--config", file, "--log-level", "debug"])
        _ = try await listen.line(of: .output, within: .seconds(60)) { $0.contains("\"ready\":true") }
        try await RunningGateway.with(configuration: file, "--log-level", "debug") { gateway in
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('\(title)')")
          // One that the server refuses, so that its answer is reported as well.
          try PlainSQL.run(database, "INSERT INTO todos(title, owner_id) VALUES ('\(title)', '\(title)')")
          _ = try await listen.line(of: .output, within: .seconds(60)) { $0.contains("\"cause\":\"broadcast\"") }
          try await eventually("the refusal") {
            try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_rejections") == ["1"]
          }
          let ending = await gateway.process.stop()
          said += ending.output + ending.errors
        }
        let heard = await listen.stop()
        said += heard.output + heard.errors
        let server = await stack.process.stop()
        said += server.output.dropFirst() + server.errors

        #expect(said.count > 10)
        let text = said.joined(separator: "\n")
        for secret in [title, stack.publishableKey, Stack.password, stack.jwtSecret, "eyJ", Stack.email] {
          #expect(!text.contains(secret), "\(said.first { $0.contains(secret) } ?? "")")
        }
      }
    }
  }
}
