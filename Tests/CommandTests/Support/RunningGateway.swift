import HostKit

/// `kizuna-doorbell run` on a configuration, ready to be used.
struct RunningGateway: Sendable {
  let process: ChildProcess

  /// Starts it, waits until its topics are joined, and ends it when `body` is done.
  static func with<Result>(
    configuration: String, _ more: String..., body: (RunningGateway) async throws -> Result
  ) async throws -> Result {
    let process = try ChildProcess(
      executable: Binaries.doorbell, arguments: ["run", "--config", configuration, "--log-format", "json"] + more)
    do {
      _ = try await process.line(of: .errors, within: .seconds(150)) { $0.contains("\"event\":\"gateway.ready\"") }
      let result = try await body(RunningGateway(process: process))
      await process.stop()
      return result
    } catch {
      await process.stop()
      throw error
    }
  }
}

/// Tries `condition` until it holds. For what another process does to a file, which tells nobody.
func eventually(
  _ what: String, within patience: UInt64 = .seconds(180), _ condition: () async throws -> Bool
) async throws {
  let deadline = SystemClock.shared.now + patience
  while try await !condition() {
    guard SystemClock.shared.now < deadline else { throw ChildProcessError(message: "\(what) did not happen") }
    try await SystemClock.shared.sleep(nanoseconds: .milliseconds(10))
  }
}
