import HostKit
import LocalStack
import SyncServer
import Testing

/// F21, by command: `sync --sweep` removes rows that access was withdrawn from, by itself and beside a `run`.
@Suite struct SweepTests {
  @Test func whatIsHiddenGoesOnDemand() async throws {
    try await Scratch.with { scratch in
      let stack = try await LocalStack.start(
        LocalStackConfiguration(
          tables: ["todos": SyncTable(policy: .owner(column: "reader"), includesKeyColumns: true)],
          users: [.init(email: Stack.email, password: Stack.password)]))
      do {
        try await sweep(stack, scratch)
      } catch {
        try await stack.stop()
        throw error
      }
      try await stack.stop()
    }
  }

  private func sweep(_ stack: LocalStack, _ scratch: Scratch) async throws {
    let user = stack.users[0].id
    func reader(_ key: String, _ reader: String) async throws {
      try await stack.server.upsert("todos", key, ["reader": .string(reader)])
    }
    for key in ["a", "b", "c"] { try await reader(key, user) }
    let database = scratch.path + "/a.db"
    let file = try scratch.write(
      "a.json",
      """
      {
        "url": "\(stack.url)", "publishableKey": "\(stack.publishableKey)", "database": "\(database)",
        "tables": {"todos": {}}, "pollInterval": 3600,
        "session": {"email": "\(Stack.email)", "password": "\(Stack.password)"},
      }
      """)
    func rows() throws -> [String] { try PlainSQL.run(database, "SELECT id FROM todos ORDER BY id") }
    // Before there is a database it is an ordinary sync.
    #expect(try await Binaries.doorbell("sync", "--config", file, "--sweep").code == 0)
    #expect(try rows() == ["a", "b", "c"])
    try await reader("b", "somebody else")
    #expect(try await Binaries.doorbell("sync", "--config", file).code == 0)
    #expect(try rows() == ["a", "b", "c"])
    #expect(try await Binaries.doorbell("sync", "--config", file, "--sweep").code == 0)
    #expect(try rows() == ["a", "c"])

    try await RunningGateway.with(configuration: file) { _ in
      try await reader("c", "somebody else")
      #expect(try await Binaries.doorbell("sync", "--config", file, "--sweep").code == 0)
      #expect(try rows() == ["a"])
    }
    let status = try await Binaries.doorbell("status", "--config", file, "--json")
    let value = try JSONValue(parsing: status.output.joined())
    #expect(value["hidden_rows_kept"] == 0 && value["last_sweep"]?.stringValue != nil)
  }
}
