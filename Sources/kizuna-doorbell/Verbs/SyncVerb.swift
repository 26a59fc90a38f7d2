import Glibc
import HostKit
import KizunaDoorbell
import KizunaSync

/// `sync`: one push and pull, done by this process, or asked of the `run` that has the database.
enum SyncVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell sync",
      summary: "One push and pull; prints a JSON summary and tells by the exit code whether everything was delivered.",
      options: [
        ConfigurationOption.option.required,
        .flag("sweep", "also remove rows that the server does not show any more though nobody deleted them"),
      ] + LogOutput.options), run: run)

  /// How long others may keep it from its turn: each of many at once has a run of its own.
  private static let patience: UInt64 = .seconds(120)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let log = LogOutput.log(from: arguments)
    let configuration = try ConfigurationOption.load(arguments, log: log)
    if arguments.flag("sweep"), access(configuration.database, F_OK) == 0 {
      // Nothing else runs in this process yet, so the write may block.
      try KizunaSyncReplicaStatus.askForSweep(databasePath: configuration.database)
    }
    let deadline = SystemClock.monotonic + patience
    while true {
      let failure: GatewayError
      do throws(GatewayError) {
        let summary = try await SingleSync.run(configuration, log: log)
        return SyncReport(
          outboxDepth: summary.outboxDepth, rejected: summary.rejected, cursor: summary.cursor,
          softBlock: summary.softBlock, leftovers: summary.leftovers, duration: summary.duration, by: "sync"
        ).print(arguments)
      } catch {
        failure = error
      }
      guard failure.kind == .locked else { throw failure }
      guard SystemClock.monotonic < deadline else {
        throw GatewayError(
          .locked, "\(failure.message); others have had the database for \(patience / 1_000_000_000) s")
      }
      // Nobody, or somebody who has not said who: it was let go of a moment ago, or taken.
      guard let pid = KizunaSyncReplicaStatus.holder(ofDatabase: configuration.database)?.processID else {
        try await Task.sleep(for: .milliseconds(Int.random(in: 5...25)))
        continue
      }
      if let code = try await SyncBesideRun(configuration, pid: pid, arguments: arguments, log: log).run() {
        return code
      }
    }
  }
}
