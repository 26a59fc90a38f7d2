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
        ConfigurationOption.option,
        .flag("sweep", "also remove rows that the server does not show any more though nobody deleted them"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let log = LogOutput.log(from: arguments)
    let configuration = try ConfigurationOption.load(arguments, log: log)
    if arguments.flag("sweep"), access(configuration.database, F_OK) == 0 {
      // Nothing else runs in this process yet, so the write may block.
      try KizunaSyncReplicaStatus.askForSweep(databasePath: configuration.database)
    }
    var failure: GatewayError
    // A second time when the holder ended before it did what it was asked.
    var triesLeft = 2
    repeat {
      do throws(GatewayError) {
        let summary = try await SingleSync.run(configuration, log: log)
        return SyncReport(
          outboxDepth: summary.outboxDepth, rejected: summary.rejected, cursor: summary.cursor,
          softBlock: summary.softBlock, duration: summary.duration, by: "sync"
        ).print()
      } catch {
        failure = error
      }
      guard failure.kind == .locked else { throw failure }
      let holder = KizunaSyncReplicaStatus.holder(ofDatabase: configuration.database)
      if let pid = holder?.processID, let code = try await SyncBesideRun(configuration, pid: pid, log: log).run() {
        return code
      }
      triesLeft -= 1
    } while triesLeft > 0
    throw failure
  }
}
