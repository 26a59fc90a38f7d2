import HostKit
import KizunaDoorbell
import KizunaSync

/// `reset`: empties a replica, for another user or after a block that only this ends.
enum ResetVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell reset",
      summary: "Empties the replica, for another user or after a block; the next sync reads everything again.",
      options: [
        ConfigurationOption.option.required, .flag("discard-writes", "also lose the writes that were never sent"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let log = LogOutput.log(from: arguments)
    let configuration = try ConfigurationOption.load(arguments, log: log, signsIn: false)
    try await ReplicaAccess.with(configuration) { try await reset($0, discarding: arguments.flag("discard-writes")) }
    StandardStreams.print("The replica is empty; the next sync or run reads everything again.")
    return .ok
  }

  private static func reset(_ client: KizunaSyncClient, discarding: Bool) async throws {
    let waiting = try await client.outboxDepth()
    guard waiting == 0 || discarding else {
      throw CommandFailure(
        .workLeft,
        "\(Counted.of(waiting, "write")) never sent would be lost; "
          + "send with `kizuna-doorbell sync` first, or give --discard-writes")
    }
    _ = try await client.reset()
  }
}
