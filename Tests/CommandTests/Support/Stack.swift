import HostKit

/// A development server of its own process, with one table and two users.
struct Stack: Sendable {
  static let email = "ann@example.com"
  static let password = "correct-horse-battery"

  let process: ChildProcess
  let url: String
  let publishableKey: String
  let jwtSecret: String
  let userID: String

  /// Starts a server, and ends it when `body` is done.
  static func with<Result>(_ options: String..., body: (Stack) async throws -> Result) async throws -> Result {
    let process = try ChildProcess(
      executable: Binaries.localStack,
      arguments: [
        "--port", "0", "--table", "todos:owner_id", "--user", "\(email):\(password)", "--user", "bob@example.com:bob",
      ] + options)
    do {
      let line = try await process.line(of: .output, within: .seconds(150))
      let ready = try JSONValue(parsing: line)
      let result = try await body(
        Stack(
          process: process, url: try text(ready["url"]), publishableKey: try text(ready["publishableKey"]),
          jwtSecret: try text(ready["jwtSecret"]), userID: try text(ready["users"]?[0]?["id"])))
      await process.stop()
      return result
    } catch {
      await process.stop()
      throw error
    }
  }

  private static func text(_ value: JSONValue?) throws -> String {
    guard let text = value?.stringValue else { throw ChildProcessError(message: "the ready line lacks a member") }
    return text
  }

  /// An access token of the first user.
  func signIn() async throws -> String {
    let curl = try ChildProcess(
      executable: "/usr/bin/curl",
      arguments: [
        "--silent", "--noproxy", "*", "-H", "apikey: \(publishableKey)", "-H", "Content-Type: application/json",
        "-d", #"{"email":"\#(Self.email)","password":"\#(Self.password)"}"#, url + "/auth/v1/token?grant_type=password",
      ])
    let answer = try JSONValue(parsing: await curl.ending().output.joined())
    return try Self.text(answer["access_token"])
  }

  /// The text of a configuration for this server.
  func configuration(
    database: String, url: String? = nil, key: String? = nil, session: String? = nil, more: String = ""
  ) -> String {
    """
    {
      "url": "\(url ?? self.url)",
      "publishableKey": "\(key ?? publishableKey)",
      "database": "\(database)",
      "tables": {
        "todos": {
          "bucket": {"owner": "owner_id"},
          "columns": {"owner_id": "text", "title": "text", "done": "boolean"},
        },
      },
      "session": \(session ?? "{\"email\": \"\(Self.email)\", \"password\": \"\(Self.password)\"}"),
      \(more)
    }
    """
  }
}
