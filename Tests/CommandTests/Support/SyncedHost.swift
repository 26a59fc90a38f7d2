import HostKit
import Testing

/// A server, and a database that was synced with it once.
enum SyncedHost {
  /// - Parameter body: gets the server, the test's folder, and in it the paths of the database and of its configuration.
  static func with(
    _ body: (_ stack: Stack, _ scratch: Scratch, _ database: String, _ configuration: String) async throws -> Void
  ) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let configuration = try scratch.write("a.json", stack.configuration(database: database))
        let ending = try await Binaries.doorbell("sync", "--config", configuration)
        try #require(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
        try await body(stack, scratch, database, configuration)
      }
    }
  }
}
