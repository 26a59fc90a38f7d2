import Foundation
import HostKit
import Testing

@Suite struct SecretsTests {
  /// Everything that two gateways, a listener, a `sync` and the server say at the most talkative level, while rows come,
  /// change and go, holds no token, no key, no password and no text of a row.
  @Test func nothingSecretIsLogged() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let (a, b) = (scratch.path + "/a.db", scratch.path + "/b.db")
        let fileA = try scratch.write("a.json", stack.configuration(database: a))
        let fileB = try scratch.write("b.json", stack.configuration(database: b))
        let talkative = ["--log-level", "debug"]
        let (title, other) = ("the-surprise-party", "the-changed-plan")
        var said: [String] = []
        func count(_ database: String, _ condition: String) throws -> String? {
          try PlainSQL.run(database, "SELECT count(*) FROM todos WHERE \(condition)").first
        }
        let listen = try ChildProcess(
          executable: Binaries.doorbell, arguments: ["listen", "--config", fileA] + talkative)
        _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
        try await RunningGateway.with(configuration: fileA, "--log-level", "debug") { first in
          try await RunningGateway.with(configuration: fileB, "--log-level", "debug") { second in
            try PlainSQL.run(a, "INSERT INTO todos(title) VALUES ('\(title)')")
            // One that the server refuses, so that its answer is reported as well.
            try PlainSQL.run(a, "INSERT INTO todos(title, owner_id) VALUES ('\(title)', '\(title)')")
            _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"cause\":\"broadcast\"") }
            try await eventually("the refusal") {
              try PlainSQL.run(a, "SELECT count(*) FROM _kizunasync_rejections") == ["1"]
            }
            try await eventually("the row") { try count(b, "title = '\(title)'") == "1" }
            try PlainSQL.run(b, "UPDATE todos SET title = '\(other)'")
            try await eventually("the update") { try count(a, "title = '\(other)'") == "1" }
            try PlainSQL.run(a, "DELETE FROM todos")
            try await eventually("the delete") { try count(b, "1") == "0" }
            let ending = await second.process.stop()
            said += ending.output + ending.errors
          }
          let ending = await first.process.stop()
          said += ending.output + ending.errors
        }
        let state = try JSONValue(parsing: String(contentsOfFile: a + "-kizuna.session", encoding: .utf8))
        let refreshToken = try #require(state["refresh_token"]?.stringValue ?? state["refreshToken"]?.stringValue)
        // It goes on with the refresh token that the gateway left.
        let sync = try ChildProcess(executable: Binaries.doorbell, arguments: ["sync", "--config", fileA] + talkative)
        let synced = await sync.ending()
        said += synced.output + synced.errors
        let newer = try JSONValue(parsing: String(contentsOfFile: a + "-kizuna.session", encoding: .utf8))
        let heard = await listen.stop()
        said += heard.output + heard.errors
        let server = await stack.process.stop()
        said += server.output.dropFirst() + server.errors

        #expect(said.count > 30)
        let text = said.joined(separator: "\n")
        let secrets = [
          title, other, stack.publishableKey, Stack.password, stack.jwtSecret, "eyJ", Stack.email, refreshToken,
          newer["refresh_token"]?.stringValue ?? newer["refreshToken"]?.stringValue ?? refreshToken,
        ]
        for secret in secrets {
          #expect(!text.contains(secret), "\(said.first { $0.contains(secret) } ?? "")")
        }
      }
    }
  }
}
