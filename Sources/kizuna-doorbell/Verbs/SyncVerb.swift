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
      options: [ConfigurationOption.option] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let log = LogOutput.log(from: arguments)
    let configuration = try ConfigurationOption.load(arguments, log: log)
    do throws(GatewayError) {
      return report(try await SingleSync.run(configuration, log: log))
    } catch {
      guard error.kind == .locked,
        let pid = KizunaSyncReplicaStatus.holder(ofDatabase: configuration.database)?.processID
      else { throw error }
      return try await SyncBesideRun.run(configuration, pid: pid, log: log)
    }
  }

  private static func report(_ summary: SyncSummary) -> ExitCode {
    StandardStreams.print(
      JSONWriter.text([
        "ok": .bool(summary.isDelivered), "outbox_depth": .int(summary.outboxDepth),
        "rejected": .int(summary.rejected), "cursor": .string(summary.cursor),
        "blocked": .string(orNull: summary.softBlock),
        "duration_ms": .int(Int(summary.duration.inMilliseconds.rounded())), "by": "sync",
      ]))
    if let block = summary.softBlock { StandardStreams.printError("kizuna-doorbell: \(SoftBlock.sentence(block))") }
    return summary.isDelivered ? .ok : .workLeft
  }
}
